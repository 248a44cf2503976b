package snapshot

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/cache/shared"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/source/history"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/tasks"
)

const project = `
commit "c" {}
variant "base" { baseline = true }
variant "one" {}
variant "two" {}
fix "config" {
  when = true
  file {
    from = "fix/config"
    to   = "config"
  }
}
image "built" {
  build { context = "context" }
}
mount "models" {
  source   = "./models"
  target   = "/models"
  identity = "1"
}
task "made" {
  command = "sh scripts/make.sh words >$OUT/made"
}
benchmark "speed" {
  for_each = candidates
  image    = image.built
  mounts   = [mount.models]
  secrets  = ["TOKEN"]
  data     = { "in" = task.made }
  command  = "run ${abspath("scripts/make.sh")} ${join(" ", fileset("scripts", "*"))} ${file("text")}"
  metrics {
    metric "items" {
      match  = "([0-9.]+) items/s"
      better = "higher"
    }
  }
}
compare "all" { of = [benchmark.speed] }
`

// machine is a machine with a store of its own and a shared one behind it.
type machine struct {
	t     *testing.T
	store *shared.Store
	state string
}

func newMachine(t *testing.T, place string) *machine {
	t.Helper()
	disk, err := disk.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t, shared.New(disk), t.TempDir()}
	m.store.Share(shared.Options{Bucket: bucket.NewDirectory(place), Name: place, Dir: t.TempDir(),
		Wanted: func(string) bool { return false }, Tell: func(w string) { t.Error(w) }})
	t.Cleanup(func() { _ = m.store.Close() })
	return m
}

// facts returns the facts of the project in a directory, which is a copy if home is not empty.
func (m *machine) facts(dir, home string, lock *lockfile.Lock) *tasks.Facts {
	m.t.Helper()
	spec, _, diags := hclspec.Load(hclspec.Options{Dir: dir, Home: home, Lock: lock})
	if diags.HasErrors() {
		m.t.Fatal(diags)
	}
	pool, err := device.NewPool(device.Options{CPUs: 2, Cores: device.Cores, Memory: 8 << 30, GPUs: gpu.These(nil)})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { pool.Close() })
	journal, err := journal.Open(filepath.Join(m.state, "journal"))
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { journal.Close() })
	f := tasks.NewFacts(tasks.Config{Journal: journal, StateDir: m.state, Store: m.store, Pool: pool,
		Progress: io.Discard,
		Stat:     cache.OpenStatCache(filepath.Join(m.state, "stat")), Sandbox: "none", Home: home,
		LockFile: filepath.Join(dir, lockFile),
		Secret:   func(name string) (string, bool) { return "hidden-from-all", name == "TOKEN" }}, spec, lock)
	f.Hardware = "a machine of its own"
	return f
}

// texts returns the descriptions of a graph's nodes, by address.
func texts(t *testing.T, f *tasks.Facts) (*tasks.Drawing, map[string]string) {
	t.Helper()
	graph, d, err := tasks.Graph(t.Context(), f, tasks.NewChoice())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, n := range graph.Nodes() {
		text := cache.Describe(n.Kind)
		n.Task.Describe(text)
		all[n.Address] = text.Text() + n.Exclude.Reason
		if strings.HasPrefix(n.Address, "trial.") {
			d.Jobs = append(d.Jobs, n)
		}
	}
	return d, all
}

func writeAll(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// reopened returns the project of a snapshot as another machine opens it.
func (m *machine) reopened(key cache.Key, home string) (*tasks.Drawing, map[string]string, error) {
	files, err := Bring(m.t.Context(), m.store, key, filepath.Join(m.t.TempDir(), "copy"))
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(files.Lock)
	if err != nil {
		return nil, nil, err
	}
	lock, diags := lockfile.Parse(text, lockFile)
	if diags.HasErrors() {
		return nil, nil, diags
	}
	f := m.facts(files.Dir, home, lock)
	files.Found.Give(f)
	d, all := texts(m.t, f)
	return d, all, nil
}

// Another machine draws the same graph from a snapshot, although the project has another directory there, and lays out
// the same bytes. The same project has the same snapshot; a learnt fix makes another one.
func TestAnotherMachineDrawsTheSameGraph(t *testing.T) {
	place, dir := t.TempDir(), t.TempDir()
	writeAll(t, dir, map[string]string{"benchmarks.hcl": project, "scripts/make.sh": "echo made", "scripts/other": "",
		"words": "not read by jobs", "text": "a text", "fix/config": "good", "context/Dockerfile": "FROM scratch\n",
		"context/in": "in", "unread": "private"})
	if err := os.Symlink("in", filepath.Join(dir, "context", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "context", "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	here, there := newMachine(t, place), newMachine(t, place)
	lock := &lockfile.Lock{}
	f := here.facts(dir, "", lock)
	f.Refused = tasks.Refusals{Candidates: map[string]tasks.Absence{"c/two": {Outcome: stats.BuildFailed, Why: "no"}}}
	f.Unresolved = map[string]tasks.UnknownImage{"other": {Why: "nobody knows", Open: true}}
	d, want := texts(t, f)
	source := &Source{History: history.Open("")}
	take := func() cache.Entry {
		t.Helper()
		taken, err := source.Take(t.Context(), d)
		if err == nil {
			_, err = here.store.Send(t.Context(), taken.Snapshot, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		return taken.Snapshot
	}
	e := take()
	if again := take(); again.Key != e.Key {
		t.Error("the same project has two snapshots")
	}
	for _, file := range e.Files {
		if strings.Contains(file.Path, "unread") || strings.Contains(file.Path, "words") {
			t.Errorf("the snapshot has %s", file.Path)
		}
	}
	copied, got, err := there.reopened(e.Key, dir)
	if err != nil {
		t.Fatal(err)
	}
	for address, text := range want {
		if got[address] != text {
			t.Errorf("%s: %s\nhere: %s", address, got[address], text)
		}
	}
	if len(got) != len(want) || len(want) < 8 {
		t.Errorf("%d nodes of %d", len(got), len(want))
	}
	root := copied.Spec.Dir
	for name, text := range map[string]string{"fix/config": "good", "context/link": "in"} {
		if read, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(read) != text {
			t.Errorf("%s: %q, %v", name, read, err)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "context", "in")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("the file of the context cannot be executed: %v", err)
	}
	if at := copied.MountSource(&copied.Spec.Mounts[0]); at != filepath.Join(dir, "models") {
		t.Errorf("the mount is in %s", at)
	}
	lock.Fixes = map[string][]lockfile.Fix{"config": {{Commit: "c", Evidence: "seen"}}}
	if learnt := take(); learnt.Key == e.Key {
		t.Error("a learnt fix is not in the snapshot")
	}
}

// Lay refuses an entry that does not have its key. Take refuses a secret in a file, a file that was changed since it
// was read, and a build context that is too large.
func TestSnapshotsThatAreRefused(t *testing.T) {
	place, dir := t.TempDir(), t.TempDir()
	writeAll(t, dir, map[string]string{"benchmarks.hcl": project, "scripts/make.sh": "echo made", "text": "a text",
		"fix/config": "good", "context/Dockerfile": "FROM scratch\n"})
	m := newMachine(t, place)
	f := m.facts(dir, "", &lockfile.Lock{})
	d, _ := texts(t, f)
	source := &Source{History: history.Open("")}
	refuses := func(words string) {
		t.Helper()
		if _, err := source.Take(t.Context(), d); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
	writeAll(t, dir, map[string]string{"fix/config": "it is hidden-from-all"})
	d, _ = texts(t, m.facts(dir, "", &lockfile.Lock{}))
	refuses("fix/config holds the value of the secret TOKEN")
	writeAll(t, dir, map[string]string{"fix/config": "good"})
	d, _ = texts(t, m.facts(dir, "", &lockfile.Lock{}))
	writeAll(t, dir, map[string]string{"text": "another text"})
	refuses("text was changed since it was read")
	writeAll(t, dir, map[string]string{"text": "a text"})
	taken, err := source.Take(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	e := taken.Snapshot
	if _, err := Lay(e, t.TempDir()); err != nil {
		t.Error(err)
	}
	forged := e
	forged.Files = slices.Clone(e.Files)
	forged.Files[0].Link = "/etc"
	other := e
	other.Key[0]++
	for words, e := range map[string]cache.Entry{"is a link": forged, "not those that its key stands for": other} {
		if _, err := Lay(e, t.TempDir()); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
	large := func(n *engine.Node) error { return (&taking{Drawing: d, files: map[string]wanted{}}).addImages(n) }
	writeAll(t, dir, map[string]string{"context/large": strings.Repeat("x", tasks.MaxSent+1)})
	d, _ = texts(t, m.facts(dir, "", &lockfile.Lock{}))
	if err := large(d.Jobs[0]); err == nil || !strings.Contains(err.Error(), "large in its build context") {
		t.Error(err)
	}
	refuses("large in its build context")
}
