// Package fs holds the operations on files that all packages need and that must be right in one place: files are
// replaced whole, locked, removed without leaving their tree, and opened in deep trees.
package fs
