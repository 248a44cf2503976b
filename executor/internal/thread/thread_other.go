//go:build !linux

package thread

// Go runs f in a goroutine: only on Linux does it matter in which thread that is.
func Go(f func()) { go f() }
