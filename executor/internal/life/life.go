// Package life is the common part of all kinds of processes: waiting and stopping.
package life

import (
	"context"
	"sync"
)

// Life is the life of a process. S is the status of its end.
type Life[S any] struct {
	Ended    chan struct{} // closed when the program has ended
	Stopping chan struct{} // closed when the process must end
	Gone     chan struct{} // closed when all processes have ended and all output is written

	Status S     // set before Gone is closed
	Err    error // set before Gone is closed

	once  sync.Once
	cause error // why it was stopped; set before Stopping is closed
}

// Begin makes the channels.
func (l *Life[S]) Begin() {
	l.Ended, l.Stopping, l.Gone = make(chan struct{}), make(chan struct{}), make(chan struct{})
}

// Done is that of executor.Process.
func (l *Life[S]) Done() <-chan struct{} { return l.Ended }

// Wait is that of executor.Process.
func (l *Life[S]) Wait(ctx context.Context) (S, error) {
	select {
	case <-l.Gone:
	case <-ctx.Done():
		l.Halt(context.Cause(ctx))
		<-l.Gone
	}
	if cause := l.Cause(); cause != nil {
		return l.Status, cause
	}
	return l.Status, l.Err
}

// Stop is that of executor.Process.
func (l *Life[S]) Stop() (S, error) {
	l.Halt(nil)
	<-l.Gone
	return l.Status, l.Err
}

// Halt has the process end because of a cause. Only the first cause counts.
func (l *Life[S]) Halt(cause error) {
	l.once.Do(func() {
		l.cause = cause
		close(l.Stopping)
	})
}

// Cause returns why the process was stopped; nil if it was not, or by Stop. A later Halt has no effect.
func (l *Life[S]) Cause() error {
	l.once.Do(func() {}) // orders the read after the write, or forbids the write
	return l.cause
}
