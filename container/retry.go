package container

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/benchgraph/benchgraph/container/registry"
	"github.com/benchgraph/benchgraph/failure"
)

// Attempts at a transfer.
const (
	firstPause  = time.Second // before the second attempt, doubled before each further one
	maxAttempts = 100         // total
)

// retry calls attempt until it succeeds, fails permanently, or makes no progress idle times in a row. Before each
// pause, it calls waiting with the cause.
func (e *Engine) retry(ctx context.Context, idle int, attempt func(context.Context) (progress bool, err error),
	waiting func(cause error)) error {
	pause, failed := cmp.Or(e.options.Pause, firstPause), 0
	for n := 1; ; n++ {
		progress, err := attempt(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		after, passing := passes(err)
		if failed++; progress {
			pause, failed = cmp.Or(e.options.Pause, firstPause), 0
		}
		if !passing || failed >= idle || n >= maxAttempts {
			return err
		}
		wait := min(max(pause+rand.N(pause/4+1), after), registry.MaxAfter)
		pause *= 2
		waiting(err)
		if IsGone(err) {
			_ = e.Persist(ctx, func() error { return e.Ping(ctx) }) // it may be back soon
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// passes reports whether an error is temporary, and how long the other side asks to wait.
func passes(err error) (after time.Duration, ok bool) {
	if r, ok := errors.AsType[*registry.Error](err); ok {
		return r.After, r.Passing() && !r.Stalled
	}
	return 0, Class(err) == failure.Transient || IsGone(err)
}
