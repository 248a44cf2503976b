package input

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/hclspec"
)

// Add keeps each address once, in order of first appearance, without zero addresses, for long and short lists.
func TestReferencesAreThereOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		address := rapid.Custom(func(t *rapid.T) hclspec.Address {
			n := rapid.IntRange(0, 60).Draw(t, "name")
			if n == 0 {
				return hclspec.Address{}
			}
			return hclspec.Address{Kind: "task", Name: strconv.Itoa(n)}
		})
		first := rapid.SliceOfN(address, 0, 5).Draw(t, "first")
		then := rapid.SliceOfN(address, 0, 3*fewRefs).Draw(t, "then")
		var all, one Refs
		all.Add(first...)
		all.Add(then...)
		for _, a := range append(first, then...) {
			one.Add(a)
		}
		if len(all) != len(one) {
			t.Fatalf("%d and %d", len(all), len(one))
		}
		for i := range all {
			if all[i] != one[i] || all.Label(all[i]) != "${input "+strconv.Itoa(i)+"}" ||
				all.Inside(all[i]) != "/benchgraph/in/"+strconv.Itoa(i) {
				t.Fatalf("%s is not reference %d", all[i], i)
			}
		}
	})
}
