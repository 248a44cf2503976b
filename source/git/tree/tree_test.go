package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func TestPathsOfATree(t *testing.T) {
	for path, want := range map[string]bool{
		"a": true, "a/b.c": true, ".github/x": true, "...": true, "a/.gitignore": true, "": false, ".": false,
		"..": false, "a/../b": false,
		"/a": false, "a//b": false, "a/": false, ".git": false, "a/.Git/b": false, ".g\u200cit": false,
		"GIT~1/x": false, ".git. /x": false, ".git::$INDEX_ALLOCATION/x": false, ".gitx": true, "git": true,
		"a\x00b": false, "\xff": false,
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

// A guard asks for the names of each file, and trees have thousands of links that lead elsewhere.
func TestNamesLookAtNoLinkThatLeadsElsewhere(t *testing.T) {
	links := map[string]string{"a/b": "../c"}
	for i := range 5000 {
		links[fmt.Sprint("link", i)] = fmt.Sprint("a/directory/whose/name/is/long/place", i)
	}
	l := NewLinks(links)
	want := map[string][]string{"a/b/.d/e": {"a/b"}}
	if diff := cmp.Diff(want, l.Names("c/.d/e")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if n := testing.AllocsPerRun(1, func() { l.Names("c/.d/e") }); n > 100 {
		t.Errorf("%v allocations", n)
	}
	if names := l.Names("/c"); len(names) > 0 { // a path that no tree has
		t.Error(names)
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
		{map[string]string{"a": "b/../..", "b": "a"}, "a", true},
		{map[string]string{"a": strings.Repeat("x/", 3000) + strings.Repeat("../", 3000)}, "a", false},
		{chain(40), "l0", true},
		{chain(41), "l0", false},
	} {
		if got := NewLinks(c.links).StaysInside(c.link); got != c.stays {
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
		links := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c/a", "c/b", "d/e/a"}), target, 1, 4).Draw(rt,
			"links")
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
		known := NewLinks(links)
		for link := range links {
			if !known.StaysInside(link) {
				continue
			}
			got, err := filepath.EvalSymlinks(filepath.Join(root, link))
			if err == nil && got != root && !strings.HasPrefix(got, root+"/") {
				rt.Fatalf("%s of %v leads to %s", link, links, got)
			}
		}
	})
}

// chain returns links, each of which leads to the next.
func chain(n int) map[string]string {
	links := map[string]string{}
	for i := range n {
		links[fmt.Sprintf("l%d", i)] = fmt.Sprintf("l%d", i+1)
	}
	return links
}

// However links lead through each other, the cost grows with the length of their targets.
func BenchmarkLinks(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		links := map[string]string{}
		for i := range n {
			links[fmt.Sprintf("l%d", i)] = strings.Repeat(fmt.Sprintf("l%d/../", i+1-i%39/38*39), 200)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				known := NewLinks(links)
				for link := range links {
					known.StaysInside(link)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/link")
		})
	}
}

// Of two links, their target and a path that leads through them: what is accepted, a root directory accepts, too.
func FuzzLinks(f *testing.F) {
	f.Add("b/../x", "a", ".")
	f.Add("../..", "d/../../e", "\x00")
	f.Fuzz(func(t *testing.T, one, two, three string) {
		links := map[string]string{"a": one, "d/b": two, "d/e/c": three}
		known := NewLinks(links)
		for link, target := range links {
			inside := false
			fuzzing.Frugal(t, len(one)+len(two)+len(three), func() { inside = known.StaysInside(link) })
			if inside && (strings.HasPrefix(target, "/") || strings.ContainsRune(target, 0)) {
				t.Fatalf("%s of %q was accepted", link, links)
			}
			if again := NewLinks(links).StaysInside(link); again != inside {
				t.Fatalf("%s of %q: %t after the others, %t alone", link, links, inside, again)
			}
		}
	})
}
