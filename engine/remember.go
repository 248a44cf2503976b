package engine

import (
	"slices"

	"github.com/benchgraph/benchgraph/cache"
)

// remembered finds the failure because of which a key is not to be run, and says why that is.
func (o *PlanOptions) remembered(address string, key cache.Key) (attempt cache.Attempt, reason string, ok bool) {
	if attempt, ok = o.GaveUp[key]; ok {
		return attempt, "gave up: " + attempt.Failure.Message, true
	}
	if o.RetryFailed {
		return attempt, "", false
	}
	if attempt, ok = o.Journal.Failure(key); ok {
		reason = "failed before: " + attempt.Failure.Message + "; it runs again when an input changes, or with -retry-failed"
	}
	if o.AsIs && !ok {
		return o.lastFailure(address, key)
	}
	return attempt, reason, ok
}

// lastFailure is the last failure of a key, of whatever class.
func (o *PlanOptions) lastFailure(address string, key cache.Key) (cache.Attempt, string, bool) {
	for _, a := range slices.Backward(o.Journal.Attempts(address)) {
		if a.Key == key {
			if a.Failure == nil {
				break // it succeeded since; its result was evicted
			}
			return a, "failed: " + a.Failure.Message + "; the next apply tries it again", true
		}
	}
	return cache.Attempt{}, "", false
}
