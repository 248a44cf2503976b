package bucket

import (
	"context"
	"errors"
	"time"
)

// ErrAway is wrapped by the error of a request that got no answer, or that the server cannot serve now. The same
// request may succeed later.
var ErrAway = errors.New("the store is away")

// away is an error that matches ErrAway, with words of its own.
type away struct{ error }

func (a away) Is(target error) bool { return target == ErrAway }

func (a away) Unwrap() error { return a.error }

// longestPause bounds the pause between two tries of Patiently.
const longestPause = 30 * time.Second

// Patiently repeats try as long as its error is ErrAway or ErrFull: for the time within, or, if that is 0, until ctx
// ends. It calls tell with the first error.
func Patiently(ctx context.Context, within time.Duration, tell func(error), try func() error) error {
	pause := time.Second
	for begun := time.Now(); ; pause = min(2*pause, longestPause) {
		err := try()
		passes := errors.Is(err, ErrAway) || errors.Is(err, ErrFull)
		if !passes || within > 0 && time.Since(begun) > within {
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
