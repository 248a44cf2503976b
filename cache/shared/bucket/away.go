package bucket

import (
	"context"
	"errors"
	"time"
)

// ErrAway is in the error of a request without an answer, and of one that the server cannot serve now. The same request
// may succeed later.
var ErrAway = errors.New("the store is away")

// away is an error that wraps ErrAway, in words of its own.
type away struct{ error }

func (a away) Is(target error) bool { return target == ErrAway }

func (a away) Unwrap() error { return a.error }

// longestPause is how long Patiently waits at most between two tries.
const longestPause = 30 * time.Second

// Patiently tries something again as long as a store is away: within a time, or until ctx ends if that is 0. It tells
// of the first try that failed.
func Patiently(ctx context.Context, within time.Duration, tell func(error), try func() error) error {
	pause := time.Second
	for begun := time.Now(); ; pause = min(2*pause, longestPause) {
		err := try()
		if !errors.Is(err, ErrAway) || within > 0 && time.Since(begun) > within {
			return err
		}
		if pause == time.Second {
			tell(err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
