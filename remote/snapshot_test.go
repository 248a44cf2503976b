package remote

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/hclspec"
)

// A snapshot has the files that were read, and nothing of the state but answers. Another machine gets the same bytes.
// The same files have the same key.
func TestASnapshotReachesAnotherMachine(t *testing.T) {
	ctx, dir, place := t.Context(), t.TempDir(), t.TempDir()
	state := filepath.Join(dir, ".benchgraph")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("benchmarks.hcl", "commit \"c\" {}\n")
	write("in/sum.c", "int main;\n")
	write("unread", "private")
	write(".benchgraph/answers/host", "an answer")
	write(".benchgraph/jobs/request.json", "a secret")
	write("given.json", "{}")
	open := func() *shared.Store {
		t.Helper()
		disk, err := cache.OpenDisk(filepath.Join(t.TempDir(), "store"))
		if err != nil {
			t.Fatal(err)
		}
		s := shared.New(disk)
		s.Share(shared.Options{Bucket: bucket.NewDirectory(place), Name: place, Dir: t.TempDir(),
			Wanted: func(string) bool { return false }, Tell: func(w string) { t.Error(w) }})
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	here, there := open(), open()
	take := func() cache.Key {
		t.Helper()
		stat := cache.OpenStatCache(filepath.Join(t.TempDir(), "stat"))
		for _, name := range []string{"in/sum.c", "in", ".benchgraph/jobs/request.json", "../other"} {
			_, _ = stat.Hash(ctx, filepath.Join(dir, name))
		}
		from := Source{Project{Dir: dir, State: state, VarFiles: []string{filepath.Join(dir, "given.json")}},
			&hclspec.Spec{Reads: hclspec.Reads{Regular: map[string]bool{"benchmarks.hcl": true, "gone": false}}},
			&hclspec.Lock{}, stat}
		key, err := from.Snapshot(ctx, here)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	key := take()
	if again := take(); again != key {
		t.Errorf("the same files have the keys %v and %v", key, again)
	}
	e, err := there.Ask(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range e.Files {
		names = append(names, f.Path)
	}
	want := []string{"project/benchgraph.lock.hcl", "project/benchmarks.hcl", "project/in/sum.c", "state/answers/host",
		"var_files/0.json"}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("the snapshot has %s", strings.Join(names, " "))
	}
	p := Project{VarFiles: []string{"/elsewhere/given.json"}}
	project, own, vars, err := p.unpack(e, filepath.Join(t.TempDir(), "work"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(project, "in", "sum.c"))
	if err != nil || !bytes.Equal(text, []byte("int main;\n")) {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(own, "answers", "host")); err != nil || len(vars) != 1 {
		t.Errorf("%v, %v", vars, err)
	}
	write("in/sum.c", "int other;\n")
	if changed := take(); changed == key {
		t.Error("other files have the same key")
	}
	e.Files = append(slices.Clone(e.Files), cache.File{Path: "project/out", Link: "/etc"})
	if _, _, _, err := p.unpack(e, t.TempDir()); err == nil {
		t.Error("a link was unpacked")
	}
}
