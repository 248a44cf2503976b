package git

import (
	"os"
	"path/filepath"
	"testing"
)

// Kept commits outlive an amended branch in the repository from which the mirror borrows.
func TestKeptCommitsOutliveTheirRepository(t *testing.T) {
	o := newOrigin(t)
	first := o.commit("first", map[string]string{"a.txt": "a\n", "dir/b.txt": "b\n"})
	second := o.commit("second", map[string]string{"a.txt": "other\n"})
	third := o.commit("third", map[string]string{"dir/c.txt": "c\n"})
	m, _ := open(t, o.dir)
	for _, list := range [][]string{{second}, {second, third}, {third}} {
		if err := m.Keep(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	packs, err := filepath.Glob(filepath.Join(m.Dir, "objects", "pack", "*.pack"))
	if err != nil || len(packs) != 2 { // one for each time that something was new
		t.Errorf("%q, %v", packs, err)
	}
	o.git("reset", "-q", "--hard", first)
	o.git("reflog", "expire", "--expire=now", "--all")
	o.git("gc", "-q", "--prune=now")
	for commit, want := range map[string]string{second: "b\n", third: "b\n"} {
		dir := filepath.Join(t.TempDir(), "out")
		if err := m.Checkout(t.Context(), commit, dir); err != nil {
			t.Error(err)
			continue
		}
		a, err := os.ReadFile(filepath.Join(dir, "a.txt"))
		b, err2 := os.ReadFile(filepath.Join(dir, "dir", "b.txt"))
		if err != nil || err2 != nil || string(a) != "other\n" || string(b) != want {
			t.Errorf("%q, %q, %v, %v", a, b, err, err2)
		}
	}
	if err := m.Keep(t.Context(), []string{first, second}); err != nil {
		t.Error(err)
	}
}
