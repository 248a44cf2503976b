// Package thread gives goroutines threads of their own.
package thread

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Go runs f in a goroutine that has a thread of its own, which is not the main one: the main thread is the parent of
// all orphans that this process adopts, and of nothing else.
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
		<-done // until then this thread is taken, so that the other is another
	}()
}
