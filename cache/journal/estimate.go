package journal

import (
	"slices"
	"strings"
	"time"
)

// Estimate returns how long a success at the address takes: the median of the last eight of its own, or else of the
// last eight of all addresses that differ only in their instance key; 0 if nothing is known. own reports whether
// the address itself has succeeded before.
func (j *Journal) Estimate(address string) (d time.Duration, own bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked()
	var durations []time.Duration
	for _, n := range j.addresses[address] {
		if n.Failure == nil {
			durations = append(durations, n.Duration)
		}
	}
	if own = len(durations) > 0; !own {
		durations = slices.Clone(j.kinds[kindOf(address)])
	}
	durations = lastOf(durations, keptDurations)
	if len(durations) == 0 {
		return 0, false
	}
	slices.Sort(durations)
	return (durations[(len(durations)-1)/2] + durations[len(durations)/2]) / 2, own
}

// lastOf returns the last n elements. The memory of the others is freed only when the slice grows.
func lastOf[T any](s []T, n int) []T {
	if len(s) > n {
		clear(s[:len(s)-n])
		s = s[len(s)-n:]
	}
	return s
}

// kindOf returns an address without its instance key: wheel.vllm of wheel.vllm["a/b"].
func kindOf(address string) string {
	kind, _, _ := strings.Cut(address, "[")
	return kind
}
