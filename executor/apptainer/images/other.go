// Package images keeps images for Apptainer, which runs only on Linux.

//go:build !linux

package images
