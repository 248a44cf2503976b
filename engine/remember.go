package engine

import "github.com/benchgraph/benchgraph/cache"

// remembered finds the failure because of which a key is not to be run, and says why that is.
func (o *PlanOptions) remembered(address string, key cache.Key) (attempt cache.Attempt, reason string, ok bool) {
	if attempt, ok = o.GaveUp[key]; ok {
		return attempt, "gave up: " + attempt.Failure.Message, true
	}
	if attempt, ok = o.Journal.Failure(key); ok {
		return attempt, "failed before: " + attempt.Failure.Message + "; it runs again when an input changes, or with -retry-failed", true
	}
	if o.AsIs {
		// Of whatever class. When it succeeded since, its result was evicted.
		if attempt, ok = o.Journal.Last(address, key); ok && attempt.Failure != nil {
			return attempt, "failed: " + attempt.Failure.Message + "; the next apply tries it again", true
		}
	}
	return cache.Attempt{}, "", false
}

// retries says whether a remembered failure of a key is to be tried again.
func (o *PlanOptions) retries(key cache.Key) bool {
	_, gaveUp := o.GaveUp[key]
	return o.RetryFailed && !gaveUp
}

// endedWell says whether the last attempt at a key succeeded, whatever became of its result.
func (o *PlanOptions) endedWell(address string, key cache.Key) bool {
	last, ok := o.Journal.Last(address, key)
	return ok && last.Failure == nil
}
