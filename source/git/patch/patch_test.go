package patch

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/source/git/tree"
)

const edit = "--- a/dir/a.txt\n+++ b/dir/a.txt\n@@ -1,2 +1,2 @@ func x()\n-a\n+b\n c\n"

func TestTouchedPaths(t *testing.T) {
	for name, c := range map[string]struct {
		patch string
		want  []string
	}{
		"plain":   {edit, []string{"dir/a.txt"}},
		"trimmed": {strings.TrimSpace(edit), []string{"dir/a.txt"}},
		"rename": {"diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n",
			[]string{"x", "y"}},
		"copy":    {"diff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to y\n", []string{"y"}},
		"mode":    {"diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", []string{"x"}},
		"new":     {"--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n", []string{"n"}},
		"deleted": {"--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", []string{"n"}},
		"two of two kinds": {"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n" + edit,
			[]string{"dir/a.txt", "x"}},
		"headers as content": {"--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n--- a/no\n-+++ b/no\n-@@ -1 +1 @@\n+-- " +
			"a/no\n+diff --git a/no b/no\n+x\n", []string{"x"}},
		"carriage returns": {strings.ReplaceAll(edit, "\n", "\r\n"), []string{"dir/a.txt"}},
		"in a mail": {"From 123\nSubject: --- a\n\n--- \n dir/a.txt | 2 +-\n\n" + edit + "-- \n2.39.5\n\n",
			[]string{"dir/a.txt"}},
	} {
		if got, err := Touched([]byte(c.patch)); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestWhereAPatchIsWrong(t *testing.T) {
	for want, text := range map[string]string{
		"patch: empty": " \n",
		"patch: no difference in it (wanted: the output of git diff)": "hello\n",
		"patch line 10: fragment header miscounts lines: -1 old, -1 new": edit + "\n" +
			strings.Replace(edit, "-1,2 +1,2", "-1,3 +1,3", 1),
		"patch line 1: ../x: leads out of the tree, or into .git": strings.ReplaceAll(edit,
			"dir/a.txt", "../x"),
		"patch line 1: m: changes a submodule": "diff --git a/m b/m\nnew " +
			"file mode 160000\n",
		"patch line 1: b: a binary file without its content (wanted: git diff --binary)": "diff --git a/b " +
			"b/b\nindex 1..2 100644\nBinary files a/b and b/b differ\n",
	} {
		if _, err := Parse([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestCanonicalHidesWhatHasNoEffect(t *testing.T) {
	canonical := func(text string) string {
		parts, err := Parse([]byte(text))
		if err != nil || len(parts) != 1 {
			t.Fatal(parts, err)
		}
		return parts[0].Canonical()
	}
	if canonical(edit) != canonical(strings.Replace(edit, " func x()", "", 1)) {
		t.Error("the function that git names beside a hunk counts")
	}
	if canonical(edit) == canonical(strings.Replace(edit, "+b", "+B", 1)) {
		t.Error("the content does not count")
	}
}

// Without git's own header, a patch has two names for a file. git compares them without their prefixes.
func TestNamesOfPlainPatchesAreThoseThatGitTakes(t *testing.T) {
	for names, want := range map[string]string{
		"a/x b/x": "x", "a/x b/x.orig": "x", "a/x.orig b/x": "x", "old/x new/y": "y", "a/x /b/x": "", "/a/x b/x": "",
		"x b/y": "y", "a/x y": "x", "x x": "",
	} {
		old, name, _ := strings.Cut(names, " ")
		touched, err := Touched([]byte("--- " + old + "\n+++ " + name + "\n@@ -1 +1 @@\n-a\n+b\n"))
		if got := strings.Join(touched, " "); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v, want %q", names, got, err, want)
		}
	}
}

func FuzzTouched(f *testing.F) {
	for _, seed := range []string{
		"", "prose\n", "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-line a\n+LINE A\n line b\n",
		"diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n",
		"diff --git a/x b/x\nold mode 100644\nnew mode 100755\n",
		"diff --git a/b b/b\nnew file mode 100644\nindex 0000000..1\nGIT binary patch\nliteral " +
			"3\nKcmZQzWMBXQ0RR910H6Q>\n\nliteral 0\nHcmV?d00001\n\n",
		"--- a/x\r\n+++ b/x\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n\\ No newline at end of file\r\n",
		"diff --git \"a/\\303\\274\" \"b/\\303\\274\"\ndeleted file mode 100644\n--- \"a/\\303\\274\"\n+++ " +
			"/dev/null\n@@ -1 +0,0 @@\n-x\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, patch []byte) {
		var paths []string
		var err error
		fuzzing.Frugal(t, len(patch), func() { paths, err = Touched(patch) })
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if len(paths) == 0 {
			t.Fatal("a patch that touches nothing was accepted")
		}
		for _, p := range paths {
			if !tree.Inside(p) {
				t.Fatalf("path %q leads out", p)
			}
		}
		parts, err := Parse(patch)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			if p.Canonical() == "" {
				t.Fatal("a part without text")
			}
		}
	})
}

func TestPatchesOfModesAlone(t *testing.T) {
	const mode = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"
	const hunk = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
	for text, want := range map[string]bool{
		mode:        true,
		mode + hunk: false,
		mode + "diff --git a/y b/y\n" + strings.ReplaceAll(hunk, "/x", "/y"):      false,
		"diff --git a/x b/x\nnew file mode 100755\n":                              false,
		"diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n": false,
	} {
		if got := OnlyModes([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
