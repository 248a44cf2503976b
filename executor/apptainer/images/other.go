// Package images keeps images for Apptainer, which runs on Linux alone.

//go:build !linux

package images
