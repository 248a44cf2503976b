package cores

import (
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// TestShare makes sure that each number is in one range, and no range is longer than it may be.
func TestShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, stride := rapid.IntRange(0, 300).Draw(t, "n"), rapid.IntRange(1, 70).Draw(t, "stride")
		seen := make([]atomic.Int32, n)
		var long atomic.Int32
		Share(n, stride, func(from, to int) {
			if to-from > stride || from >= to {
				long.Add(1)
			}
			for i := from; i < to; i++ {
				seen[i].Add(1)
			}
		})
		for i := range seen {
			if seen[i].Load() != 1 {
				t.Fatalf("%d was seen %d times", i, seen[i].Load())
			}
		}
		if long.Load() > 0 {
			t.Fatalf("%d ranges are empty or too long", long.Load())
		}
	})
}
