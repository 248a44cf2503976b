// Package thread runs goroutines on threads of their own.
package thread

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Go runs f in a goroutine with its own thread, never the main thread: adopted orphans become children of the main
// thread, and it must have no other children.
func Go(f func()) {
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if unix.Gettid() != os.Getpid() {
			f()
			return
		}
		done := make(chan struct{})
		Go(func() { defer close(done); f() })
		<-done // holds the main thread until then, so that the other goroutine gets another
	}()
}
