package git

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// The ancestors that are found are those whose digests are equal: all of them, also behind a change that was taken
// back.
func TestNearestAncestorsAreThoseOfTheSameDigest(t *testing.T) {
	o := newOrigin(t)
	random := rand.New(rand.NewPCG(1, 2))
	files := map[string]string{"csrc/a.cu": "0", "csrc/b.cu": "0", "pkg/a.py": "0", "setup.py": "0"}
	var all []string
	for i := range 40 {
		name := []string{"csrc/a.cu", "csrc/b.cu", "pkg/a.py", "pkg/a.py", "pkg/a.py"}[random.IntN(5)]
		content := fmt.Sprint(random.IntN(2))
		if name == "pkg/a.py" {
			content = fmt.Sprint(i)
		}
		files[name] = content
		if i%7 == 3 {
			// A branch that comes in with a merge is not on the line.
			o.git("checkout", "-q", "-b", fmt.Sprint("side", i))
			o.commit("side", map[string]string{"pkg/side.py": fmt.Sprint(i), "csrc/side.cu": fmt.Sprint(i / 14)})
			o.git("checkout", "-q", "main")
			o.git("merge", "-q", "--no-ff", "-m", "merge", fmt.Sprint("side", i))
			all = append(all, o.git("rev-parse", "HEAD"))
		}
		all = append(all, o.commit(fmt.Sprint(i), files))
	}
	overlay := []string{"pkg/**"}
	m, x := open(t, o.dir)
	digests, err := m.OutsideAll(t.Context(), all, overlay)
	if err != nil {
		t.Fatal(err)
	}
	before := len(x.verbs())
	for _, most := range []int{0, 1, 5, 100} {
		got, err := m.Nearest(t.Context(), all, overlay, most)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for i, commit := range all {
			var want []Ancestor
			for back := 1; back <= min(most, i); back++ {
				if digests[all[i-back]] == digests[commit] {
					want = append(want, Ancestor{all[i-back], back})
				}
			}
			found += len(want)
			if !slices.Equal(got[commit], want) {
				t.Errorf("%d, at most %d back: %v, want %v", i, most, got[commit], want)
			}
		}
		if most > 0 && found == 0 {
			t.Error("the history has no such ancestor")
		}
	}
	if n := len(x.verbs()) - before; n > 4*8 {
		t.Errorf("%d processes", n)
	}
	if _, err := m.Nearest(t.Context(), []string{"1234567890123456789012345678901234567890"}, overlay, 5); err == nil {
		t.Error("an unknown commit is no error")
	}
}
