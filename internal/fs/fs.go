// Package fs holds operations on files that all packages need and that must be correct: replacing files atomically,
// locking, removing trees without leaving them, and opening files in deep trees.
package fs
