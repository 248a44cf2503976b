package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPathsOfATree(t *testing.T) {
	for path, want := range map[string]bool{
		"a": true, "a/b.c": true, ".github/x": true, "...": true, "a/.gitignore": true, "": false, ".": false, "..": false, "a/../b": false,
		"/a": false, "a//b": false, "a/": false, ".git": false, "a/.Git/b": false, "a\x00b": false, "\xff": false,
	} {
		if got := Inside(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}

func TestTheWriterStaysInItsDirectory(t *testing.T) {
	top := t.TempDir()
	w, err := NewWriter(filepath.Join(top, "in", "here"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.File("a/b", 0o755, 1, strings.NewReader("x")); err != nil {
		t.Error(err)
	}
	if err := w.File("a/b", 0o755, 1, strings.NewReader("x")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another file: %v", err)
	}
	if err := w.Link("out", "../.."); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"out/evil", "../evil", top + "/evil"} {
		if err := w.File(path, 0o644, 1, strings.NewReader("x")); err == nil {
			t.Errorf("%s was written", path)
		}
	}
	if list, _ := os.ReadDir(top); len(list) != 1 {
		t.Errorf("outside: %v", list)
	}
}

func TestALinkIsFollowedThroughOtherLinks(t *testing.T) {
	for _, c := range []struct {
		links map[string]string
		link  string
		stays bool
	}{
		{map[string]string{"a": "."}, "a", true},
		{map[string]string{"a": ".", "b": "a/../x"}, "b", false},
		{map[string]string{"d/a": "../e/f", "b": "d/a/../../x"}, "b", true},
		{map[string]string{"d/a": "../e", "b": "d/a/../../x"}, "b", false},
		{map[string]string{"a": "b", "b": "a"}, "a", true},
		{map[string]string{"a": "b/b/b", "b": "b/b"}, "a", true},
		{map[string]string{"x/y/z": "../../.."}, "x/y/z", false},
		{map[string]string{"x/y/z": "../.."}, "x/y/z", true},
	} {
		if got := StaysInside(c.link, c.links); got != c.stays {
			t.Errorf("%s in %v: %v", c.link, c.links, got)
		}
	}
}

// The system's own resolution is the judge: no set of links that is accepted leads out.
func TestAcceptedLinksStayInside(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SampledFrom([]string{"..", ".", "a", "b", "c"})
		target := rapid.Custom(func(rt *rapid.T) string {
			return strings.Join(rapid.SliceOfN(parts, 1, 4).Draw(rt, "parts"), "/")
		})
		links := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c/a", "c/b", "d/e/a"}), target, 1, 4).Draw(rt, "links")
		top, err := os.MkdirTemp("", "links")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(top)
		top, _ = filepath.EvalSymlinks(top)
		root := filepath.Join(top, "r")
		for link, to := range links {
			os.MkdirAll(filepath.Dir(filepath.Join(root, link)), 0o755)
			if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
				rt.Fatal(err)
			}
		}
		for link := range links {
			if !StaysInside(link, links) {
				continue
			}
			got, err := filepath.EvalSymlinks(filepath.Join(root, link))
			if err == nil && got != root && !strings.HasPrefix(got, root+"/") {
				rt.Fatalf("%s of %v leads to %s", link, links, got)
			}
		}
	})
}
