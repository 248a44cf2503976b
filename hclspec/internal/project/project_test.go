package project_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/benchgraph/benchgraph/hclspec/internal/project"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

// tree returns a project with the named files, each of which holds its name.
func tree(t *testing.T, names ...string) *project.Dir {
	t.Helper()
	root := t.TempDir()
	for _, name := range names {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := project.Open(root, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

func TestSelect(t *testing.T) {
	dir := tree(t, "a.c", "b.h", "src/c.c", "src/sub/d.c", "src/sub/e.c", "src-2/f.c", ".git/config", "src/.git/x.c",
		".benchgraph/g.c", ".hidden.c")
	for _, test := range []struct {
		patterns  string
		want      string
		unmatched []int
	}{
		{"a.c", "a.c", nil},
		{"*.c", ".hidden.c a.c", nil},
		{"**/*.c", ".hidden.c a.c src-2/f.c src/c.c src/sub/d.c src/sub/e.c", nil},
		{"src/**/*.c", "src/c.c src/sub/d.c src/sub/e.c", nil},
		{"./src/*.c", "src/c.c", nil},
		{"{a,b}.[ch]", "a.c b.h", nil},
		{"**/*.c !src/**", ".hidden.c a.c src-2/f.c", nil},
		{"**/*.c !src/** src/sub/d.c", ".hidden.c a.c src-2/f.c src/sub/d.c", nil},
		{"none.c *.x a.c", "a.c", []int{0, 1}},
		{".git/config .benchgraph/* src/.git/**", "", []int{0, 1, 2}},
	} {
		got, err := dir.Select(strings.Fields(test.patterns))
		if err != nil || strings.Join(got.Files, " ") != test.want || !slices.Equal(got.Unmatched, test.unmatched) {
			t.Errorf("%s: got %v, %v; want %s, unmatched %v", test.patterns, got, err, test.want, test.unmatched)
		}
	}
	for _, bad := range []string{"../x", "/etc/*", "[", "a/../../x", "!../x", ""} {
		if got, err := dir.Select([]string{bad}); err == nil {
			t.Errorf("%q: got %v, want an error", bad, got)
		}
	}
}

func TestWhatIsNoPlainFileIsNotRead(t *testing.T) {
	dir := tree(t, "file", "sub/inside")
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(dir.Path(), name)); err != nil {
			t.Fatal(err)
		}
	}
	link("sub/inside", "good")
	link(outside, "absolute")
	link("../"+filepath.Base(filepath.Dir(outside))+"/secret", "relative")
	link("/dev/zero", "endless")
	link("loop", "loop")
	link("../file", "sub/beside")
	link(outside, "sub/away")
	link("sub", "linked")
	if err := syscall.Mkfifo(filepath.Join(dir.Path(), "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := dir.Read("good"); err != nil || string(got) != "sub/inside" {
		t.Errorf("a link that stays inside: got %q, %v", got, err)
	}
	if got, err := dir.Glob("sub/beside"); err != nil || !slices.Equal(got, []string{"sub/beside"}) {
		t.Errorf("a link that leaves its directory and stays inside: got %v, %v", got, err)
	}
	if got, err := dir.Glob("sub/none"); err != nil || len(got) != 0 {
		t.Errorf("no such file: got %v, %v", got, err)
	}
	for _, name := range []string{"sub/away", "absolute", "relative", "endless", "loop", "pipe", "sub", "../x",
		"/etc/passwd", "", "file/x"} {
		if got, err := dir.Read(name); err == nil {
			t.Errorf("%q: got %q, want an error", name, got)
		}
	}
	if _, err := dir.Read("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that there is no such file", err)
	}
	if got, err := dir.Glob("*ood"); err != nil || !slices.Equal(got, []string{"good"}) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := dir.Glob("{linked,linked/**,pip*}"); err != nil || len(got) != 0 {
		t.Errorf("a linked directory is not walked: got %v, %v", got, err)
	}
	if got, err := dir.Glob("abs*"); err == nil {
		t.Errorf("a link that leaves the project: got %v, want an error", got)
	}
}

func TestLargeFilesAreRefused(t *testing.T) {
	dir := tree(t)
	name := filepath.Join(dir.Path(), "large")
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, project.MaxFile+1); err != nil { // sparse
		t.Fatal(err)
	}
	if _, err := dir.Read("large"); err == nil || !strings.Contains(err.Error(), "64 MiB") {
		t.Errorf("got %v", err)
	}
}

// FuzzPattern checks that a pattern, alternative by alternative, matches the same names as in the library.
func FuzzPattern(f *testing.F) {
	f.Add("src/**/*.{c,h}", "src/a/b.c")
	f.Add("{a,b{c,d}}[{,}]\\\\{x,y}", "bc,{x,y}")
	f.Add("{a,}/**", "a/b")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		fuzzing.Frugal(t, len(pattern)+len(name), func() {
			if len(pattern)+len(name) > 200 {
				return
			}
			p, err := project.ParsePattern(pattern)
			if err != nil {
				return
			}
			got := p.Match(name)
			if strings.Count(pattern, "{") > 3 {
				return // the library may take for ever
			}
			// The library does not see that "*{,x}" matches the empty name.
			if want, err := doublestar.Match(pattern, name); err == nil && want && !got {
				t.Fatalf("%q does not match %q, and should", pattern, name)
			}
		})
	})
}
