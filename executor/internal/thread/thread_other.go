//go:build !linux

package thread

// Go runs f in a goroutine: the thread matters only on Linux.
func Go(f func()) { go f() }
