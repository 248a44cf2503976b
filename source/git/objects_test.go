package git

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/source/git/patch"
)

// Git's output about trees and objects is parsed without trusting a byte of it.
func FuzzObjects(f *testing.F) {
	id := strings.Repeat("a", 40)
	f.Add(":000000 100644 " + strings.Repeat("0", 40) + " " + id + " A\x00dir/a b\n\xff\x00")
	f.Add(id + " blob 12\n")
	f.Add(id + " missing\n")
	f.Fuzz(func(t *testing.T, text string) {
		fuzzing.Frugal(t, len(text), func() {
			c, err := readChange(bufio.NewReader(strings.NewReader(text)))
			if err == nil && (len(c.ID) != 40 || len(c.Mode) != 6 || len(c.oldMode) != 6 ||
				strings.ContainsRune(c.Name, 0)) {
				t.Fatalf("%+v", c)
			}
			if n, err := readHeader(bufio.NewReader(strings.NewReader(text)), id); err == nil && n < -1 {
				t.Fatalf("%d bytes", n)
			}
		})
	})
}

// The paths that git touches are among the reported ones. Each execution runs git: thousands, not millions.
func FuzzTouchedAsGit(f *testing.F) {
	for _, seed := range []string{
		"--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-line a\n+LINE A\n line b\n",
		"diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\ndiff --git a/z b/z\nold mode " +
			"100644\nnew mode 100755\n",
		"diff --git \"a/\\303\\274\" \"b/\\303\\274\"\ndeleted file mode 100644\n--- \"a/\\303\\274\"\n+++ " +
			"/dev/null\n@@ -1 +0,0 @@\n-x\n",
		"diff --git a/a b/a\n--- a/a\n+++ b/b\n@@ -1 +1 @@\n-a\n+b\n--- a/c\t2024-01-01\n+++ b/c\n@@ -0,0 +1 " +
			"@@\n+--- a/d\n",
		"--- a/a\r\n+++ b/a\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n",
	} {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		fuzzing.Frugal(t, len(text), func() {
			readings, err := patch.Readings([]byte(text))
			if err != nil {
				return
			}
			for _, r := range readings {
				var ours []string
				for _, p := range r.Parts {
					ours = append(append(ours, p.Touches()...), p.File.OldName, p.File.NewName)
				}
				for _, path := range gitTouches(t, dir, string(r.Text)) {
					if !slices.Contains(ours, path) {
						t.Fatalf("git would touch %q, and we say %q, of\n%q", path, ours, r.Text)
					}
				}
			}
		})
	})
}

// gitTouches lists the paths of a patch that git accepts.
func gitTouches(t *testing.T, dir, text string) []string {
	c := exec.Command("git", "apply", "--numstat", "-z", "-p1", "-")
	c.Dir, c.Stdin = dir, strings.NewReader(text)
	c.Env = []string{"PATH=/usr/bin:/bin", "GIT_CEILING_DIRECTORIES=" + dir, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null"}
	out, err := c.Output()
	if _, refused := errors.AsType[*exec.ExitError](err); refused {
		return nil
	}
	if err != nil {
		t.Skip(err)
	}
	var paths []string
	r := bufio.NewReader(strings.NewReader(string(out)))
	for {
		field, err := r.ReadString(0)
		if errors.Is(err, io.EOF) {
			return paths
		}
		path := strings.TrimSuffix(field, "\x00")
		if counts := strings.SplitN(path, "\t", 3); len(counts) == 3 {
			path = counts[2]
		}
		if path != "" {
			paths = append(paths, path)
		}
	}
}
