package executor

import (
	"context"
	"sync"
)

// life is the common part of all kinds of processes: waiting and stopping.
type life struct {
	done chan struct{} // closed when the program has ended
	stop chan struct{} // closed when the process must end
	gone chan struct{} // closed when all processes have ended and all output is written

	once   sync.Once
	cause  error // why it was stopped; set before stop is closed
	status Status
	err    error
}

func (l *life) begin() {
	l.done, l.stop, l.gone = make(chan struct{}), make(chan struct{}), make(chan struct{})
}

func (l *life) Done() <-chan struct{} { return l.done }

func (l *life) Wait(ctx context.Context) (Status, error) {
	select {
	case <-l.gone:
	case <-ctx.Done():
		l.halt(context.Cause(ctx))
		<-l.gone
	}
	l.once.Do(func() {}) // orders the read of cause after its write, or forbids the write
	if l.cause != nil {
		return l.status, l.cause
	}
	return l.status, l.err
}

func (l *life) Stop() (Status, error) {
	l.halt(nil)
	<-l.gone
	return l.status, l.err
}

func (l *life) halt(cause error) {
	l.once.Do(func() {
		l.cause = cause
		close(l.stop)
	})
}
