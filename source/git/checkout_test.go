package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/source/git/command"
	"github.com/benchgraph/benchgraph/source/git/mirror"
)

func TestCheckoutLaysOutExactlyWhatIsStored(t *testing.T) {
	o := newOrigin(t)
	files := map[string]string{
		"README": "hello\n", "x:bin/run.sh": "#!/bin/sh\n", "deep/er/and/deeper.txt": "d", "empty": "",
		"l:link": "deep/er", "l:deep/up": "../README", "l:deep/dangling": "nowhere/at/all", "l:loop": "loop",
		"crlf.txt": "a\r\nb\n", "name with spaces.txt": "s", "näme.txt": "u", "binary": "\x00\x01\xff", "-dash": "d",
		"a\tb": "tab",
		// None of these may have an effect.
		".gitattributes": "*.txt text eol=crlf\nident.c ident\n*.bin filter=lfs\nenc.txt " +
			"working-tree-encoding=UTF-16\nREADME export-ignore\n",
		"ident.c": "$Id$\n", "big.bin": "version https://git-lfs.github.com/spec/v1\n", "eol.txt": "1\n2\n",
		".gitignore": "*\n",
	}
	o.write(files)
	o.git("add", "-A", "-f")
	o.git("-c", "core.safecrlf=false", "commit", "-q", "-m", "all")
	commit := o.git("rev-parse", "HEAD")
	files["crlf.txt"] = "a\nb\n" // git itself stored it so, because of the attribute
	for name, location := range map[string]string{"path": o.dir, "URL": "file://" + o.dir} {
		t.Run(name, func(t *testing.T) {
			m, _ := open(t, location)
			dir := filepath.Join(t.TempDir(), "made", "on", "the", "way")
			if err := m.Checkout(t.Context(), commit, dir); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(files, layout(t, dir)); diff != "" {
				t.Error(diff)
			}
			if err := m.Checkout(t.Context(), commit, dir); err == nil || !strings.Contains(err.Error(), "not empty") {
				t.Errorf("into a full directory: %v", err)
			}
		})
	}
}

func TestASubmoduleIsAnEmptyDirectory(t *testing.T) {
	o := newOrigin(t)
	inner := newOrigin(t)
	head := inner.commit("x", map[string]string{"f": "f"})
	o.write(map[string]string{".gitmodules": "[submodule \"m\"]\n\tpath = third/m\n\turl = " + inner.dir + "\n"})
	o.git("update-index", "--add", "--cacheinfo", "160000,"+head+",third/m")
	o.git("add", ".gitmodules")
	o.git("commit", "-q", "-m", "sub")
	m, _ := open(t, o.dir)
	dir := t.TempDir()
	if err := m.Checkout(t.Context(), o.git("rev-parse", "HEAD"), dir); err != nil {
		t.Fatal(err)
	}
	if got := layout(t, dir); len(got) != 2 || got["third/m/"] != "" {
		t.Errorf("%v", got)
	}
}

// hostileTree stores a tree that git itself would not make: entries are "mode name\0" with the blob "evil".
func hostileTree(t *testing.T, o *origin, mode, name, content string) string {
	t.Helper()
	o.write(map[string]string{".git/blob": content})
	blob := o.git("hash-object", "-w", ".git/blob")
	raw := make([]byte, 0, 20)
	for i := 0; i < 40; i += 2 {
		var b byte
		for _, c := range blob[i : i+2] {
			b = b<<4 | byte(strings.IndexRune("0123456789abcdef", c))
		}
		raw = append(raw, b)
	}
	o.write(map[string]string{".git/tree": mode + " " + name + "\x00" + string(raw)})
	tree := o.git("hash-object", "-w", "-t", "tree", "--literally", ".git/tree")
	commit := o.git("commit-tree", tree, "-m", "hostile")
	o.git("branch", "-f", "hostile", commit)
	return commit
}

func TestPathsOutOfTheTreeAreRefused(t *testing.T) {
	o := newOrigin(t)
	o.commit("x", map[string]string{"a": "a"})
	for _, c := range []struct{ mode, name, content string }{
		{"120000", "out", "../secret"}, {"120000", "abs", "/etc/passwd"}, {"120000", "sneaky", "a/../../x"},
		{"100644", "..", "x"}, {"100644", ".git", "x"}, {"100644", ".GIT", "x"}, {"100644", ".", "x"},
		{"100644", "a/../../b", "x"},
	} {
		m, _ := open(t, o.dir)
		dir := filepath.Join(t.TempDir(), "d")
		err := m.Checkout(t.Context(), hostileTree(t, o, c.mode, c.name, c.content), dir)
		if e, ok := errors.AsType[*Escapes](err); !ok || e.Path != c.name {
			t.Errorf("%s %s: %v", c.mode, c.name, err)
		}
		if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: something was written", c.name)
		}
	}
}

func TestAPartialMirrorFetchesWhatACheckoutNeedsInOneGo(t *testing.T) {
	o := newOrigin(t)
	old := o.commit("old", map[string]string{"a": "old a", "b": "old b", "l:c": "a", "same": "s"})
	o.commit("new", map[string]string{"a": "new a", "b": "new b"})
	o.git("config", "uploadpack.allowFilter", "true")
	o.git("config", "uploadpack.allowAnySHA1InWant", "true")
	m, x := open(t, "file://"+o.dir)
	if _, err := m.Resolve(t.Context(), []string{"main"}); err != nil {
		t.Fatal(err)
	}
	blob := o.git("rev-parse", old+":a")
	if out, err := m.Git.Output(t.Context(), command.Call{Args: []string{"cat-file", "--batch-check"}, Stdin: blob +
		"\n"}); err != nil || !strings.HasSuffix(out, "missing\n") {
		t.Fatalf("the mirror is not partial: %q, %v", out, err)
	}
	dir := t.TempDir()
	if err := m.Checkout(t.Context(), old, dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "old a", "b": "old b", "l:c": "a", "same": "s"},
		layout(t, dir)); diff != "" {
		t.Error(diff)
	}
	if n := x.count("fetch"); n > 3 { // refs, links, files
		t.Errorf("%d fetches: %v", n, x.verbs())
	}
	// A patch needs its files, and they come in one go, too.
	m, x = open(t, "file://"+o.dir)
	dir = t.TempDir()
	patch := "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old a\n\\ No newline at end of file\n+patched\n"
	if _, err := m.Apply(t.Context(), old, []byte(patch), dir); err != nil {
		t.Fatal(err)
	}
	if got := layout(t, dir)["a"]; got != "patched\n" {
		t.Errorf("a is %q", got)
	}
	if n := x.count("fetch"); n > 4 {
		t.Errorf("%d fetches: %v", n, x.verbs())
	}
}

func TestWithoutFilterOnTheServerTheWholeHistoryComes(t *testing.T) {
	o := newOrigin(t)
	id := o.commit("x", map[string]string{"a": "a"})
	o.git("config", "uploadpack.allowFilter", "false")
	m, x := open(t, "file://"+o.dir)
	dir := t.TempDir()
	if err := m.Checkout(t.Context(), id, dir); err != nil {
		t.Fatal(err)
	}
	if n := x.count("fetch"); n != 1 || layout(t, dir)["a"] != "a" {
		t.Errorf("%d fetches", n)
	}
}

func TestAnIncompleteLocalRepositoryIsToldApart(t *testing.T) {
	o := newOrigin(t)
	first := o.commit("one", map[string]string{"a": "1"})
	second := o.commit("two", map[string]string{"a": "2"})
	o.git("config", "uploadpack.allowFilter", "true")
	shallow, partial := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "p")
	o.git("clone", "-q", "--depth=1", "file://"+o.dir, shallow)
	o.git("clone", "-q", "--filter=blob:none", "--no-checkout", "file://"+o.dir, partial)

	m, _ := open(t, shallow)
	if err := m.Checkout(t.Context(), second, filepath.Join(t.TempDir(), "d")); err != nil {
		t.Errorf("what a shallow clone has: %v", err)
	}
	_, err := m.Resolve(t.Context(), []string{second + "^", first})
	if err == nil || !strings.Contains(err.Error(), "has no ^ in the shallow clone") {
		t.Errorf("shallow: %v", err)
	}
	// Git itself would ask the server of a partial clone.
	m, x := open(t, partial)
	dir := t.TempDir()
	patch := "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n\\ No newline at end of file\n+patched\n"
	if _, err := m.Apply(t.Context(), first, []byte(patch), dir); err != nil || layout(t, dir)["a"] != "patched\n" {
		t.Errorf("partial: %v", err)
	}
	if err := m.Checkout(t.Context(), second, filepath.Join(t.TempDir(), "d")); err != nil || x.count("fetch") != 2 {
		t.Errorf("partial: %v, %v", x.verbs(), err)
	}
	gitIn(t, partial, "config", "--unset", "remote.origin.url")
	m, _ = open(t, partial)
	err = m.Checkout(t.Context(), second, filepath.Join(t.TempDir(), "d"))
	mo, ok := errors.AsType[*mirror.MissingObjects](err)
	if !ok || mo.Count != 1 || !strings.Contains(err.Error(), "partial") {
		t.Errorf("partial: %v", err)
	}
	treeless := filepath.Join(t.TempDir(), "t")
	o.git("clone", "-q", "--filter=tree:0", "--no-checkout", "file://"+o.dir, treeless)
	m, _ = open(t, treeless)
	if _, err := m.Resolve(t.Context(), []string{second + "^"}); !errors.As(err, &mo) || mo.Object != first+"^{tree}" {
		t.Errorf("without trees: %v", err)
	}
}

func TestACancelledCheckoutStopsAndSaysSo(t *testing.T) {
	o := newOrigin(t)
	id := o.commit("x", map[string]string{"a": "a"})
	m, _ := open(t, o.dir)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the user pressed Ctrl-C")
	cancel(why)
	if err := m.Checkout(ctx, id, t.TempDir()); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

func TestOutsideLeavesOutTheOverlay(t *testing.T) {
	o := newOrigin(t)
	base := o.commit("base", map[string]string{"csrc/k.cu": "k", "vllm/a.py": "a", "vllm/deep/b.py": "b",
		"setup.py": "s"})
	python := o.commit("python only", map[string]string{"vllm/a.py": "a2", "vllm/new.py": "n"})
	native := o.commit("native", map[string]string{"csrc/k.cu": "k2"})
	o.must(os.Chmod(filepath.Join(o.dir, "csrc/k.cu"), 0o755))
	mode := o.commit("mode", nil)
	m, x := open(t, o.dir)
	overlay := []string{"vllm/**/*.py"}
	got, err := m.OutsideAll(t.Context(), []string{base, python, native, mode, base}, overlay)
	if err != nil {
		t.Fatal(err)
	}
	if n := x.count("diff-tree"); n != 1 {
		t.Errorf("%d processes read the trees", n)
	}
	if got[base] != got[python] || got[base] == got[native] || got[native] == got[mode] {
		t.Errorf("%v", got)
	}
	one, err := m.OutsideAll(t.Context(), []string{native}, overlay)
	if err != nil || one[native] != got[native] {
		t.Errorf("alone: %v, %v", one, err)
	}
	all, _ := m.OutsideAll(t.Context(), []string{base, python}, nil)
	if all[base] == all[python] {
		t.Error("without an overlay everything is outside")
	}
	if _, err := m.OutsideAll(t.Context(), []string{base}, []string{"a[", "b"}); err == nil {
		t.Error("a malformed pattern was accepted")
	}
	inPatch := "--- a/vllm/a.py\n+++ b/vllm/a.py\n@@ -1 +1 @@\n-a\n+b\n"
	outPatch := "--- a/setup.py\n+++ b/setup.py\n@@ -1 +1 @@ def f():\n-s\n+t\n"
	move := "diff --git a/vllm/a.py b/csrc/a.py\nsimilarity index 100%\nrename from vllm/a.py\nrename to csrc/a.py\n"
	digest := func(commit, patch string) string {
		d, err := OutsidePatched(got[base], commit, []byte(patch), overlay)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if digest(base, inPatch) != got[base] {
		t.Error("a patch inside the overlay changes what is outside")
	}
	if digest(base, outPatch) == got[base] || digest(base, inPatch+outPatch) != digest(python, outPatch) {
		t.Error("only what lies outside counts")
	}
	if header := "diff --git a/setup.py b/setup.py\nindex %s 100644\n"; digest(base,
		fmt.Sprintf(header, "1234567..89abcde")+outPatch) != digest(base,
		fmt.Sprintf(header, "1234567890..89abcdef12")+outPatch) {
		t.Error("how long git wrote the hashes counts")
	}
	if digest(base, move) == digest(python, move) {
		t.Error("a file moved out of the overlay is known by the commit that it comes from")
	}
}

// Files of the overlay have no influence on the digest.
func TestOutsideIsTheDigestOfTheTreeWithoutTheOverlay(t *testing.T) {
	o := newOrigin(t)
	o.commit("x", nil)
	m, _ := open(t, o.dir)
	marks := filepath.Join(t.TempDir(), "marks")
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		if n++; n > 8 {
			return // each draws a handful of processes
		}
		names := rapid.SampledFrom([]string{"a", "b/c", "b/d.py", "b/e/f.py", "z.py", "a.b", "a-b"})
		files := rapid.MapOfN(names, rapid.StringMatching(`[a-z]{0,3}`), 1, 7).Draw(rt, "files")
		overlay := rapid.SliceOfN(rapid.SampledFrom([]string{"**/*.py", "b/**", "a*", "*"}), 0, 2).Draw(rt, "overlay")
		in, err := matcher(overlay)
		if err != nil {
			rt.Fatal(err)
		}
		var stream strings.Builder
		for mark, covered := range []bool{true, false} {
			fmt.Fprintf(&stream, "commit refs/heads/c%d\nmark :%d\ncommitter a <a@b> 0 +0000\ndata 0\ndeleteall\n",
				mark, mark+1)
			for name, content := range files {
				if covered || !in(name) {
					fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", name, len(content), content)
				}
			}
		}
		o.write(map[string]string{".git/stream": stream.String()})
		o.git("-c", "core.fsync=none", "-c",
			"alias.load=!git fast-import --quiet --force --export-marks="+marks+" < .git/stream", "load")
		text, err := os.ReadFile(marks)
		if err != nil {
			rt.Fatal(err)
		}
		var full, part string
		for line := range strings.Lines(string(text)) {
			mark, id, _ := strings.Cut(strings.TrimSpace(line), " ")
			if mark == ":1" {
				full = id
			} else {
				part = id
			}
		}
		got, err := m.OutsideAll(t.Context(), []string{full, part}, overlay)
		if err != nil || len(got[full]) != 64 || got[full] != got[part] {
			rt.Fatalf("%v, %v", got, err)
		}
	})
}
