package container

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/container/registry"
	"github.com/benchgraph/benchgraph/failure"
)

func unserved(why registry.Reason) error { return &registry.Error{Reason: why} }

// Retries respect a registry's Retry-After; without one, the pauses grow.
func TestRetry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		errs     []error // of each attempt
		progress []bool
		attempts int
		min, max time.Duration
	}{
		"at once":   {[]error{nil}, nil, 1, 0, 0},
		"permanent": {[]error{unserved(registry.Denied)}, nil, 1, 0, 0},
		"asked to wait": {[]error{&registry.Error{Reason: registry.Throttled, After: time.Minute}, nil}, nil, 2,
			time.Minute, time.Minute},
		"grows": {[]error{unserved(registry.Failing), unserved(registry.Failing), nil}, nil, 3,
			3 * time.Second, 4 * time.Second},
		"gives up": {[]error{unserved(registry.Unreachable), unserved(registry.Failing),
			unserved(registry.Throttled)}, nil, 3, 3 * time.Second, 4 * time.Second},
		"goes on": {[]error{unserved(registry.Failing), unserved(registry.Failing),
			unserved(registry.Failing), unserved(registry.Failing), nil},
			[]bool{false, true, false, false, true}, 5, 8 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := Open(Options{})
				begun, n, told := time.Now(), 0, 0
				err := e.retry(t.Context(), 3, func(context.Context) (bool, error) {
					n++
					return n <= len(c.progress) && c.progress[n-1], c.errs[n-1]
				}, func(cause error) {
					if told++; cause != c.errs[n-1] {
						t.Errorf("pause %d is for %v, not for what the attempt before it ended with", told, cause)
					}
				})
				if told != c.attempts-1 {
					t.Errorf("%d pauses were told between %d attempts", told, c.attempts)
				}
				if took := time.Since(begun); n != c.attempts || err != c.errs[n-1] || took < c.min || took > c.max {
					t.Errorf("%d attempts in %v, %v", n, took, err)
				}
			})
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if err := Open(Options{}).retry(ctx, 3, func(context.Context) (bool, error) {
		return false, &Unavailable{}
	}, nil); err != cause {
		t.Error(err)
	}
}

func TestClassOfRefusals(t *testing.T) {
	t.Parallel()
	for reason, want := range map[registry.Reason]failure.Class{
		registry.Denied: failure.Permanent, registry.Missing: failure.Permanent,
		registry.Damaged: failure.Permanent, registry.Untrusted: failure.Permanent,
		registry.Throttled: failure.Transient, registry.Failing: failure.Transient,
		registry.Unreachable: failure.Transient,
	} {
		if got := Class(fmt.Errorf("pull: %w", &registry.Error{Reason: reason})); got != want {
			t.Errorf("%s: %v", reason, got)
		}
	}
}
