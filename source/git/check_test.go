package git

import (
	"errors"
	"slices"
	"testing"
)

func TestAPatchIsCheckedAsItWillBeApplied(t *testing.T) {
	o := newOrigin(t)
	one := o.commit("one", map[string]string{"a.txt": "one\ntwo\nthree\nfour\nfive\n", "dir/b.txt": "b\n",
		"bin": "\x00\x01", "l:near": "hop/../../a.txt", "l:hop": "dir/deep", "dir/deep/c.txt": "c\n"})
	o.commit("two", map[string]string{"a.txt": "zero\none\ntwo\nthree\nfour\nfive\n"})
	m, _ := open(t, o.dir)
	const change = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
	const link = "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n"
	tests := []struct {
		name, patch string
	}{
		{"plain", change},
		{"lines have moved", "--- a/a.txt\n+++ b/a.txt\n@@ -2,3 +2,3 @@\n one\n-two\n+2\n three\n"},
		{"does not apply", "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-three\n+3\n"},
		{"no such file", "--- a/c.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-c\n+d\n"},
		{"a new file", "--- /dev/null\n+++ b/dir/c.txt\n@@ -0,0 +1 @@\n+c\n"},
		{"a new directory", "--- /dev/null\n+++ b/more/c.txt\n@@ -0,0 +1 @@\n+c\n"},
		{"below a file", "--- /dev/null\n+++ b/a.txt/c.txt\n@@ -0,0 +1 @@\n+c\n"},
		{"there already", "--- /dev/null\n+++ b/dir/b.txt\n@@ -0,0 +1 @@\n+c\n"},
		{"removed", "--- a/dir/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n"},
		{"one of two does not apply", change + "--- a/dir/b.txt\n+++ b/dir/b.txt\n@@ -1 +1 @@\n-x\n+y\n"},
		{"moved", "diff --git a/dir/b.txt b/c.txt\nsimilarity index 100%\nrename from dir/b.txt\nrename to c.txt\n"},
		{"out of the tree", "--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-x\n+y\n"},
		{"a link", link + "+dir/b.txt\n\\ No newline at end of file\n"},
		{"a link out of the tree", link + "+../secret\n\\ No newline at end of file\n"},
		{"another link leads out", "diff --git a/hop b/hop\ndeleted file mode 120000\n--- a/hop\n+++ /dev/null\n" +
			"@@ -1 +0,0 @@\n-dir/deep\n\\ No newline at end of file\n"},
		{"without prefixes", "diff --git a.txt a.txt\n--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n" +
			" three\n"},
		{"without prefixes in part", "diff --git a/a.txt b/a.txt\n--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n" +
			"+2\n three\n"},
		{"a directory for a prefix", "diff --git dir/b.txt dir/b.txt\n--- dir/b.txt\n+++ dir/b.txt\n" +
			"@@ -1 +1 @@\n-b\n+c\n"},
		{"a mode without prefixes", "diff --git a.txt a.txt\nold mode 100644\nnew mode 100755\n"},
		{"a new file without prefixes", "diff --git n n\nnew file mode 100644\n--- /dev/null\n+++ n\n" +
			"@@ -0,0 +1 @@\n+c\n"},
		{"nothing after the change", "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,3 @@\n one\n two\n+2\n"},
		{"no context", "--- a/a.txt\n+++ b/a.txt\n@@ -3 +3 @@\n-three\n+3\n"},
		{"nothing before the change", "--- a/a.txt\n+++ b/a.txt\n@@ -3,2 +3,2 @@\n-three\n+3\n four\n"},
		{"at the end", "--- a/a.txt\n+++ b/a.txt\n@@ -4,2 +4,3 @@\n four\n five\n+six\n"},
		{"empty", ""},
	}
	all := make([]Patching, len(tests))
	for i, tt := range tests {
		all[i] = Patching{Commit: one, Text: []byte(tt.patch)}
	}
	answers, err := m.CheckPatches(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range tests {
		_, applied := m.Apply(t.Context(), one, []byte(tt.patch), t.TempDir())
		if (answers[i] == nil) != (applied == nil) || answers[i] != nil && answers[i].Error() != applied.Error() {
			t.Errorf("%s: checked: %v; applied: %v", tt.name, answers[i], applied)
		}
		_, refused := errors.AsType[*PatchError](answers[i])
		if refused == (tt.name == "another link leads out") && answers[i] != nil {
			t.Errorf("%s: %T", tt.name, answers[i])
		}
	}
}

func TestDirectoriesAndFilesAreReadByTheirPlaces(t *testing.T) {
	o := newOrigin(t)
	one := o.commit("one", map[string]string{"a.txt": "one\n", "dir/b.txt": "b\n", "dir/big.txt": "0123456789"})
	two := o.commit("two", map[string]string{"a.txt": "two\n"})
	m, _ := open(t, o.dir)
	dirs, err := m.Dirs(t.Context(), []Place{{one, ""}, {one, "dir"}, {two, "gone"}, {two, "a.txt"}})
	if err != nil {
		t.Fatal(err)
	}
	names := func(list []Entry) (names []string) {
		for _, e := range list {
			names = append(names, e.Name)
		}
		return names
	}
	if got := names(dirs[Place{one, ""}]); !slices.Equal(got, []string{"a.txt", "dir"}) {
		t.Errorf("the root has %q", got)
	}
	if got := dirs[Place{one, "dir"}]; len(got) != 2 || got[0].IsDir() {
		t.Errorf("dir has %v", got)
	}
	if len(dirs) != 2 {
		t.Errorf("what is no directory has a list: %v", dirs)
	}
	var ids []string
	for _, e := range dirs[Place{one, "dir"}] {
		ids = append(ids, e.ID)
	}
	blobs, err := m.Blobs(t.Context(), ids, 5)
	if err != nil || string(blobs[ids[0]]) != "b\n" || blobs[ids[1]] != nil {
		t.Errorf("%q, %v", blobs, err)
	}
	parents, err := m.Parents(t.Context(), []string{one, two})
	if err != nil || len(parents[one]) != 0 || !slices.Equal(parents[two], []string{one}) {
		t.Errorf("%q, %v", parents, err)
	}
	before, err := m.IsAncestor(t.Context(), one, two)
	after, err2 := m.IsAncestor(t.Context(), two, one)
	if !before || after || err != nil || err2 != nil {
		t.Errorf("%v %v %v %v", before, after, err, err2)
	}
}
