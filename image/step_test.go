package image

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/cache"
)

// Equal steps have equal chain keys; after a difference, all chain keys differ.
func TestChainKeysFollowTheSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "ab", "a\nb", "parent", "revision"}), 1, 3)
		one := rapid.SliceOfN(step, 1, 6).Draw(t, "steps")
		other := make([][]string, len(one))
		for i := range one {
			other[i] = slices.Clone(one[i])
		}
		at := rapid.IntRange(-1, len(one)-1).Draw(t, "changed at")
		if at >= 0 {
			other[at] = step.Filter(func(s []string) bool { return !slices.Equal(s, one[at]) }).Draw(t, "instead")
		}
		chain := func(steps [][]string) (keys []string) {
			last := "sha256:base"
			for _, s := range steps {
				last = chainKey(last, "rev", func(d *cache.Description) { d.Add("step", s...) }).String()
				keys = append(keys, last)
			}
			return keys
		}
		a, b := chain(one), chain(other)
		for i := range a {
			if same := at < 0 || i < at; (a[i] == b[i]) != same {
				t.Fatalf("changed at %d: step %d has the keys %s and %s", at, i, a[i], b[i])
			}
		}
	})
}

func TestChainKeysDependOnRevisionAndParent(t *testing.T) {
	seen := map[cache.Key]string{}
	for _, parent := range []string{"", "a", "b"} {
		for _, rev := range []string{"", "a", "b"} {
			key := chainKey(parent, rev, func(d *cache.Description) { d.Add("x") })
			if other, twice := seen[key]; twice {
				t.Errorf("%q %q has the key of %s", parent, rev, other)
			}
			seen[key] = fmt.Sprintf("%q %q", parent, rev)
		}
	}
}
