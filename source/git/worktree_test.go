package git

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/source/git/worktree"
)

// The changes of a work tree are a patch on its last commit, and the repository itself stays as it is.
func TestTheChangesOfAWorkTreeMakeItsCommitIntoIt(t *testing.T) {
	o := newOrigin(t)
	base := o.commit("one", map[string]string{"a.txt": "1\n", "gone.txt": "x\n", ".gitignore": "*.o\n",
		"sub/b.txt": "b\n"})
	head := o.commit("two", map[string]string{"a.txt": "2\n"})
	for name, text := range map[string]string{"a.txt": "3\n", "new ü.bin": "\x00\x01", "skip.o": "o",
		"sub/own.hcl": "mine\n"} {
		if err := os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(o.dir, "gone.txt")); err != nil {
		t.Fatal(err)
	}
	before := o.git("status", "--porcelain") + o.git("count-objects", "-v")
	x := &realExec{}
	env := append(os.Environ(), "GIT_DIR=/nowhere", "GIT_DIFF_OPTS=-u0")
	w, err := worktree.Open(t.Context(), x, filepath.Join(o.dir, "sub"), env)
	if err != nil || w.Head != head {
		t.Fatalf("%+v, %v", w, err)
	}
	except := []string{filepath.Join(w.Top, "sub", "own.hcl"), filepath.Join(w.Top, "skip.o"), "/elsewhere"}
	files, err := w.Changes(t.Context(), except)
	if err != nil || !slices.Equal(files, []string{"a.txt", "gone.txt", "new ü.bin"}) {
		t.Fatalf("%q, %v", files, err)
	}
	patch, err := w.Patch(t.Context(), base, except)
	if err != nil {
		t.Fatal(err)
	}
	if after := o.git("status", "--porcelain") + o.git("count-objects", "-v"); after != before {
		t.Errorf("the repository was changed:\n%s\n%s", before, after)
	}
	m := openWith(t, Options{Exec: x, Dir: filepath.Join(t.TempDir(), "m"), Location: o.dir})
	dir := t.TempDir()
	if _, err := m.Apply(t.Context(), base, patch, dir); err != nil {
		t.Fatalf("%v\n%s", err, patch)
	}
	got := layout(t, dir)
	if got["a.txt"] != "3\n" || got["new ü.bin"] != "\x00\x01" || got["gone.txt"] != "" || got["sub/b.txt"] != "b\n" ||
		len(got) != 4 {
		t.Errorf("%q", got)
	}
	if has, err := w.Has(t.Context(), strings.Repeat("0", 40)); has || err != nil {
		t.Errorf("%v, %v", has, err)
	}
	if id, err := w.Resolve(t.Context(), "HEAD^"); id != base || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	if _, err := w.Resolve(t.Context(), "--all"); err == nil {
		t.Error("an option is no revision")
	}
	if _, err := worktree.Open(t.Context(), x, t.TempDir(), env); !errors.Is(err, worktree.ErrNone) {
		t.Errorf("%v", err)
	}
}
