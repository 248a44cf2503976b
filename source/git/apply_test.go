package git

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// numbered is a file of n numbered lines.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("line ")
		b.WriteByte('a' + byte(i%26))
		b.WriteString("\n")
	}
	return b.String()
}

// diffOf is the patch that git itself makes of a change, which is then undone.
func (o *origin) diffOf(change func(), args ...string) []byte {
	o.t.Helper()
	change()
	o.git("add", "-A")
	patch := o.git(append([]string{"diff", "--cached"}, args...)...) + "\n"
	o.git("reset", "-q", "--hard")
	return []byte(patch)
}

func TestApplyGivesTheTreeThatGitWouldHaveMade(t *testing.T) {
	o := newOrigin(t)
	base := o.commit("base", map[string]string{
		"a.txt": numbered(26), "x:run.sh": "#!/bin/sh\n", "crlf.txt": "1\r\n2\r\n3\r\n", "bin": "\x00\x01\x02old",
		"gone":          "g\n",
		"dir/moved.txt": numbered(20), "l:link": "a.txt", "no-eol": "end",
		".gitattributes": "*.txt -diff -merge whitespace=cr-at-eol\n", "sp ace.txt": "s\n",
	})
	o.git("config", "core.autocrlf", "false")
	for name, c := range map[string]struct {
		change func()
		args   []string
	}{
		"edits in two places": {func() {
			o.write(map[string]string{"a.txt": "first\n" + strings.Replace(numbered(26), "line y", "line Y", 1)})
		}, []string{"--text"}},
		"new, deleted, executable": {func() {
			os.Remove(filepath.Join(o.dir, "gone"))
			o.write(map[string]string{"new/file.py": "x\n", "x:new/tool": "y\n", "empty": ""})
		}, nil},
		"mode alone": {func() { o.must(os.Chmod(filepath.Join(o.dir, "run.sh"), 0o644)) }, nil},
		"renamed":    {func() { o.git("mv", "dir/moved.txt", "elsewhere.txt") }, []string{"-M"}},
		"binary": {func() {
			o.write(map[string]string{"bin": "\x00\xff\x00new\x00", "bin2": "\x00" + numbered(300)})
		}, []string{"--binary"}},
		"carriage": {func() { o.write(map[string]string{"crlf.txt": "1\r\nzwei\r\n3\n"}) }, []string{"--text"}},
		"link": {func() {
			o.write(map[string]string{"l:link": "dir/moved.txt", "l:dir/up": "../a.txt"})
		}, nil},
		"no end of line": {func() {
			o.write(map[string]string{"no-eol": "end\n", "a.txt": "gone but for this"})
		}, []string{"--text"}},
		"spaces": {func() {
			o.write(map[string]string{"sp ace.txt": "t\n", "ü.txt": "ü\n"})
		}, []string{"--text"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.change()
			o.git("add", "-A")
			tree := o.git("write-tree")
			want := layout(t, o.dir)
			delete(want, "dir/") // git keeps no empty directory, but leaves this one
			touched := strings.Split(o.git("-c", "core.quotePath=false", "diff", "--cached", "--name-only",
				"--no-renames"), "\n")
			patch := []byte(o.git(append([]string{"diff", "--cached"}, c.args...)...) + "\n\n")
			o.git("reset", "-q", "--hard")
			m, _ := open(t, o.dir)
			dir := t.TempDir()
			got, err := m.Apply(t.Context(), base, patch, dir)
			if err != nil {
				t.Fatalf("%v\n%s", err, patch)
			}
			if got != tree {
				t.Errorf("tree %s, want %s", got, tree)
			}
			if diff := cmp.Diff(want, layout(t, dir)); diff != "" {
				t.Error(diff)
			}
			left, _ := filepath.Glob(filepath.Join(m.Dir, "benchgraph-scratch-*"))
			if len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			paths, err := TouchedPaths(patch)
			slices.Sort(touched)
			if err != nil || !slices.Equal(paths, touched) {
				t.Errorf("touched %q, %v; want %q", paths, err, touched)
			}
		})
	}
}

func TestLinesMayHaveMovedButContextIsExact(t *testing.T) {
	o := newOrigin(t)
	o.commit("base", map[string]string{"a.txt": numbered(26)})
	patch := o.diffOf(func() {
		o.write(map[string]string{"a.txt": strings.Replace(numbered(26), "line m", "line M", 1)})
	})
	moved := o.commit("moved", map[string]string{"a.txt": "one more\n" + numbered(26)})
	changed := o.commit("changed", map[string]string{"a.txt": strings.Replace(numbered(26), "line l", "line L", 1)})
	m, _ := open(t, o.dir)
	dir := t.TempDir()
	if _, err := m.Apply(t.Context(), moved, patch, dir); err != nil {
		t.Errorf("moved: %v", err)
	}
	if got := layout(t, dir)["a.txt"]; !strings.HasPrefix(got, "one more\n") || !strings.Contains(got, "line M\n") {
		t.Errorf("moved: %s", got)
	}
	dir = filepath.Join(t.TempDir(), "d")
	_, err := m.Apply(t.Context(), changed, patch, dir)
	want := &PatchError{File: "a.txt", Hunk: 1, Line: 5,
		Reason: `does not apply: line 12 is "line L\n", the hunk expects "line l\n"`}
	got, ok := errors.AsType[*PatchError](err)
	if !ok || *got != *want {
		t.Errorf("changed: %v, want %v", err, want)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("a refused patch left something behind")
	}
}

func TestTheFailingHunkIsNamed(t *testing.T) {
	o := newOrigin(t)
	base := o.commit("base", map[string]string{"a.txt": numbered(26), "b.txt": numbered(26)})
	patch := o.diffOf(func() {
		o.write(map[string]string{"a.txt": "new\n" + numbered(26), "b.txt": "top\n" + numbered(26) + "bottom\n"})
	})
	broken := strings.Replace(string(patch), " line z\n+bottom", " line !\n+bottom", 1)
	m, _ := open(t, o.dir)
	_, err := m.Apply(t.Context(), base, []byte(broken), t.TempDir())
	e, ok := errors.AsType[*PatchError](err)
	if !ok || e.File != "b.txt" || e.Hunk != 2 || !strings.HasPrefix(strings.Split(broken, "\n")[e.Line-1],
		"@@ -24,3") {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestPatchesThatArePartlyRightAreRefusedWhole(t *testing.T) {
	const edit = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-line a\n+LINE A\n line b\n"
	o := newOrigin(t)
	base := o.commit("base", map[string]string{"a.txt": numbered(4), "l:dirlink": "sub", "sub/f": "f\n"})
	for name, c := range map[string]struct{ patch, want string }{
		"empty": {"", "patch: empty"},
		"blank": {" \n\n", "patch: empty"},
		"prose": {"I could not find anything to improve.\n", "no difference in it"},
		"missing file": {edit + strings.ReplaceAll(edit, "a.txt", "b.txt"), "b.txt: no such file in commit " +
			base[:12]},
		"there already": {"--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n", "there already"},
		"cut short":     {edit[:len(edit)-8], "miscounts"},
		"wrong count":   {strings.Replace(edit, "-1,2", "-1,7", 1), "miscounts"},
		"up":            {strings.ReplaceAll(edit, "a.txt", "../a.txt"), "leads out of the tree"},
		"absolute":      {"--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-x\n+y\n", "absolute"},
		"absolute, new": {"--- /dev/null\n+++ /tmp/x\n@@ -0,0 +1 @@\n+y\n", "absolute"},
		"double slash":  {"--- a//etc/x\n+++ b//etc/x\n@@ -0,0 +1 @@\n+x\n", "patch"},
		"git directory": {"--- /dev/null\n+++ b/.git/hooks/post-checkout\n@@ -0,0 +1 @@\n+x\n",
			"leads out of the tree, or into .git"},
		"git in disguise": {"--- /dev/null\n+++ b/sub/.GIT/config\n@@ -0,0 +1 @@\n+x\n",
			"leads out of the tree, or into .git"},
		"quoted up": {"diff --git \"a/\\056\\056/x\" \"b/\\056\\056/x\"\nnew file mode 100644\n--- " +
			"/dev/null\n+++ \"b/\\056\\056/x\"\n@@ -0,0 +1 @@\n+x\n", "leads out of the tree"},
		"through a link": {"--- /dev/null\n+++ b/dirlink/g\n@@ -0,0 +1 @@\n+x\n", "patch"},
		"link out": {"diff --git a/out b/out\nnew file mode 120000\n--- /dev/null\n+++ b/out\n@@ -0,0 +1 " +
			"@@\n+../../secret\n\\ No newline at end of file\n", "leads out of the tree"},
		"link, then file": {"diff --git a/o b/o\nnew file mode 120000\n--- /dev/null\n+++ b/o\n@@ -0,0 +1 " +
			"@@\n+sub\n\\ No newline at end of file\ndiff --git a/o/x b/o/x\nnew file mode 100644\n--- " +
			"/dev/null\n+++ b/o/x\n@@ -0,0 +1 @@\n+x\n", "patch"},
		"submodule": {"diff --git a/m b/m\nnew file mode 160000\nindex 0000000..1234567\n--- /dev/null\n+++ " +
			"b/m\n@@ -0,0 +1 @@\n+Subproject commit 1234567890123456789012345678901234567890\n", "changes a submodule"},
		"binary, left out": {"diff --git a/bin b/bin\nindex 1234567..89abcde 100644\nBinary files a/bin and b/bin " +
			"differ\n", "binary file without its content"},
		"rename to outside": {"diff --git a/a.txt b/../a.txt\nsimilarity index 100%\nrename from a.txt\nrename to " +
			"../a.txt\n", "leads out of the tree"},
		"binary, cut short": {"diff --git a/b b/b\nnew file mode 100644\nindex " +
			"0000000000000000000000000000000000000000..69c55f56023c82aaf160f1bfa5a5b9f387f1af7e\nGIT binary " +
			"patch\nliteral 7\nOcmZSh&ybf|&Hw-j)&fcZ\n", "binary patch: unexpected EOF"},
		"copy to outside": {"diff --git a/a.txt b/../b\nsimilarity index 100%\ncopy from a.txt\ncopy to ../b\n",
			"leads out of the tree"},
		"copy from outside": {"diff --git a/../../etc/passwd b/x\nsimilarity index 100%\ncopy from " +
			"../../etc/passwd\ncopy to x\n", "leads out of the tree"},
		"two names": {"diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/../x\n@@ -1,2 +1,2 @@\n-line a\n+LINE " +
			"A\n line b\n", "patch"},
		"binary outside": {"diff --git a/../b b/../b\nnew file mode 100644\nindex 0000000..1\nGIT binary " +
			"patch\nliteral 3\nKcmZQzWMBXQ0RR910H6Q>\n\nliteral 0\nHcmV?d00001\n\n", "patch"},
		"git on a Mac":   {"--- /dev/null\n+++ b/.g\u200cit/config\n@@ -0,0 +1 @@\n+x\n", "into .git"},
		"git on Windows": {"--- /dev/null\n+++ b/git~1/config\n@@ -0,0 +1 @@\n+x\n", "into .git"},
		"NUL in a name": {"diff --git \"a/x\\000y\" \"b/x\\000y\"\nnew file mode 100644\n--- /dev/null\n+++ " +
			"\"b/x\\000y\"\n@@ -0,0 +1 @@\n+x\n", "patch"},
		"not UTF-8": {"diff --git \"a/x\\377\" \"b/x\\377\"\nnew file mode 100644\n--- /dev/null\n+++ " +
			"\"b/x\\377\"\n@@ -0,0 +1 @@\n+x\n", "patch"},
		"link turned away": {"diff --git a/dirlink b/dirlink\nindex 1234567..89abcde 120000\n--- a/dirlink\n+++ " +
			"b/dirlink\n@@ -1 +1 @@\n-sub\n\\ No newline at end of file\n+../..\n\\ No newline at end of file\n",
			"leads out of the tree"},
		"a file's new mode": {"diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 120000\n", "patch"},
		"no prefix":         {"--- x\n+++ x\n@@ -1 +1 @@\n-a\n+b\n", "lacks the prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := open(t, o.dir)
			top := t.TempDir()
			dir := filepath.Join(top, "tree")
			_, err := m.Apply(t.Context(), base, []byte(c.patch), dir)
			if _, ok := errors.AsType[*PatchError](err); !ok || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if list, _ := os.ReadDir(top); len(list) > 0 {
				t.Errorf("left %v", list)
			}
		})
	}
}

// Patches that git makes harmless are applied as git does: a file has one of two modes.
func TestOddHeadersHaveNoEffect(t *testing.T) {
	o := newOrigin(t)
	base := o.commit("base", map[string]string{"a.txt": "line a\nline b\n"})
	for name, c := range map[string]struct {
		patch string
		want  map[string]string
	}{
		"names that differ": {"diff --git a/a.txt b/.git/config\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-line " +
			"a\n+LINE A\n line b\n", map[string]string{"a.txt": "LINE A\nline b\n"}},
		"setuid": {"diff --git a/s b/s\nnew file mode 104755\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+x\n",
			map[string]string{"a.txt": "line a\nline b\n", "x:s": "x\n"}},
		"a device's mode": {"diff --git a/dev b/dev\nnew file mode 020666\n--- /dev/null\n+++ b/dev\n@@ -0,0 +1 " +
			"@@\n+x\n", map[string]string{"a.txt": "line a\nline b\n", "dev": "x\n"}},
	} {
		m, _ := open(t, o.dir)
		dir := t.TempDir()
		if _, err := m.Apply(t.Context(), base, []byte(c.patch), dir); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(c.want, layout(t, dir)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAPatchSavedWithCarriageReturnsApplies(t *testing.T) {
	o := newOrigin(t)
	o.git("config", "core.autocrlf", "false")
	base := o.commit("base", map[string]string{"lf.txt": "1\n\n3\n", "crlf.txt": "1\r\n2\r\n3\r\n"})
	m, _ := open(t, o.dir)
	for name, want := range map[string]string{"lf.txt": "1\n\ndrei\n", "crlf.txt": "1\r\n2\r\ndrei\r\n"} {
		patch := o.diffOf(func() { o.write(map[string]string{name: want}) }, "--text")
		saved := strings.ReplaceAll(strings.ReplaceAll(string(patch), "\r\n", "\n"), "\n", "\r\n")
		dir := t.TempDir()
		if _, err := m.Apply(t.Context(), base, []byte(saved), dir); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := layout(t, dir)[name]; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if paths, err := TouchedPaths([]byte(saved)); err != nil || !slices.Equal(paths, []string{name}) {
			t.Errorf("%s: touched %q, %v", name, paths, err)
		}
	}
}

func TestAMailWithAPatchIsAPatch(t *testing.T) {
	o := newOrigin(t)
	base := o.commit("base", map[string]string{"a.txt": numbered(5)})
	o.commit("next\n\n--- not a header\n+++ nor this", map[string]string{"a.txt": numbered(6), "b": "-- \nx\n"})
	mail := o.git("format-patch", "--stdout", "-1") + "\n"
	tree := o.git("rev-parse", "HEAD^{tree}")
	m, _ := open(t, o.dir)
	if got, err := m.Apply(t.Context(), base, []byte(mail), t.TempDir()); err != nil || got != tree {
		t.Errorf("%s, %v; want %s", got, err, tree)
	}
}

// A patch between two random trees leads from the one to the other.
func TestPatchesLeadFromTreeToTree(t *testing.T) {
	o := newOrigin(t)
	m, _ := open(t, o.dir)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		if n++; n > 8 {
			return // each draws a handful of processes
		}
		line := rapid.SampledFrom([]string{"a\n", "b\n", "c\r\n", "\n", "--- a/x\n", "+++ b/y\n", "@@ -1 +1 @@\n",
			"diff --git a/x b/x\n", "\\ x\n"})
		content := rapid.Custom(func(rt *rapid.T) string {
			return strings.Join(rapid.SliceOfN(line, 0, 12).Draw(rt, "lines"), "")
		})
		files := rapid.MapOfN(rapid.SampledFrom([]string{"f", "d/g", "d/e/h", "i j", "x:s"}), content, 0, 5)
		commit := func(label string) string {
			o.git("rm", "-rqf", "--ignore-unmatch", ".")
			return o.commit(label, files.Draw(rt, label))
		}
		before, after := commit("before"), commit("after")
		patch := []byte(o.git("diff", before, after) + "\n")
		if len(strings.TrimSpace(string(patch))) == 0 {
			return
		}
		dir, err := os.MkdirTemp(t.TempDir(), "d")
		if err != nil {
			rt.Fatal(err)
		}
		want := o.git("rev-parse", after+"^{tree}")
		if got, err := m.Apply(t.Context(), before, patch, dir); err != nil || got != want {
			rt.Fatalf("%s, %v; want %s\n%s", got, err, want, patch)
		}
	})
}
