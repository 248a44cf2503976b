package disk_test

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/cachetest"
	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// openDisk opens a store, and closes it at the end of the test.
func openDisk(t testing.TB, dir string) *disk.Disk {
	t.Helper()
	d, err := disk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// storeDir makes a directory for a store. It is removed at the end of the test, although it has read-only files.
func storeDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a store [*]") // a name that is a pattern, too
	t.Cleanup(func() {
		if err := fs.RemoveTree(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestDiskPassesTheSuite(t *testing.T) {
	dirs := map[cachetest.Store]string{}
	cachetest.Run(t, func(t *testing.T) cachetest.Store {
		dir := storeDir(t)
		d := openDisk(t, dir)
		dirs[d] = dir
		return d
	}, cachetest.Hooks{Again: func(t *testing.T, first cachetest.Store) cachetest.Store {
		return openDisk(t, dirs[first])
	}})
}

func TestOpenDiskRefuses(t *testing.T) {
	for name, story := range map[string]struct {
		prepare func(dir string) error
		says    string
	}{
		"others can write": {func(dir string) error { return os.Chmod(dir, 0o777) }, "chmod -R go-w"},
		"the group can":    {func(dir string) error { return os.Chmod(dir, 0o775) }, "chmod -R go-w"},
		"something else": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o644)
		}, "not a store"},
		"a newer format": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "format"), []byte("benchgraph store 99\n"), 0o644)
		}, "newer"},
		"a damaged format": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "format"), []byte("benchgra"), 0o644)
		}, "damaged"},
		"a file": {func(dir string) error {
			return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o644))
		}, "not a directory"},
		"another's": {func(dir string) error {
			if os.Geteuid() != 0 {
				return errors.ErrUnsupported // only root can give files away
			}
			return os.Chown(dir, 12345, 12345)
		}, "belongs to user 12345"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := story.prepare(dir); errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			if _, err := disk.Open(dir); err == nil || !strings.Contains(err.Error(), story.says) {
				t.Errorf("OpenDisk: %v, want an error that says %q", err, story.says)
			}
		})
	}
}

func TestADamagedMetaFileIsAMiss(t *testing.T) {
	for name, harm := range map[string]func(string) error{
		"cut short": func(meta string) error { return os.Truncate(meta, 100) },
		"empty":     func(meta string) error { return os.Truncate(meta, 0) },
		"gone":      os.Remove,
		"one byte": func(meta string) error {
			text, err := os.ReadFile(meta)
			return errors.Join(err, os.WriteFile(meta, []byte(strings.Replace(string(text), "test.made", "test.fake",
				1)), 0o644))
		},
		"of a newer version": func(meta string) error {
			return os.WriteFile(meta, []byte("benchgraph entry 9 \n"), 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := storeDir(t)
			d := openDisk(t, dir)
			entry := cachetest.Put(t, d, "a", map[string]string{"f": "1"})
			meta := filepath.Join(filepath.Dir(entry.Dir), "meta")
			if err := errors.Join(os.Chmod(filepath.Dir(meta), 0o755), os.Chmod(meta, 0o644), harm(meta)); err != nil {
				t.Fatal(err)
			}
			_, err := d.Get(context.Background(), entry.Key, false)
			if !errors.Is(err, cache.ErrMiss) || !strings.Contains(err.Error(), "meta file") {
				t.Errorf("Get: %v, want a miss", err)
			}
			if kept, _ := iofs.Glob(os.DirFS(dir), "quarantine/*/entry/out/f"); len(kept) != 1 {
				t.Errorf("in quarantine: %q, %v", kept, err)
			}
			if reason, _ := iofs.Glob(os.DirFS(dir), "quarantine/*/reason"); len(reason) != 1 {
				t.Errorf("reasons: %q", reason)
			}
		})
	}
}

func TestAnEntryInThePlaceOfAnotherIsAMiss(t *testing.T) {
	d := openDisk(t, storeDir(t))
	a := cachetest.Put(t, d, "a", map[string]string{"f": "1"})
	b := cachetest.Put(t, d, "b", map[string]string{"f": "2"})
	from, to := filepath.Dir(a.Dir), filepath.Dir(b.Dir)
	if err := errors.Join(os.Chmod(from, 0o755), fs.RemoveTree(to), os.Rename(from, to)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get(context.Background(), b.Key, false); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("Get: %v, want a miss", err)
	}
}

func TestPutDropsSocketsAndPipes(t *testing.T) {
	d := openDisk(t, storeDir(t))
	dir := cachetest.Prepare(t, d, map[string]string{"f": "1", "private/": ""})
	out := filepath.Join(dir, cache.FilesDir)
	// A socket's path is limited to 107 bytes, so it is made elsewhere and moved.
	short, err := os.MkdirTemp("/tmp", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(short, "s")})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if err := os.Rename(filepath.Join(short, "s"), filepath.Join(out, "socket")); err != nil {
		t.Skip(err)
	}
	if err := errors.Join(syscall.Mkfifo(filepath.Join(out, "pipe"), 0o644),
		os.Chmod(filepath.Join(out, "private"), 0)); err != nil {
		t.Fatal(err)
	}
	entry, err := d.Put(context.Background(), cache.Draft{Dir: dir, Meta: cachetest.Meta("a")})
	if err != nil || len(entry.Files) != 1 || entry.Files[0].Path != "f" {
		t.Errorf("Put = %+v, %v", entry.Files, err)
	}
	if _, err := d.Get(context.Background(), entry.Key, true); err != nil {
		t.Error(err)
	}
}

func TestPutDoesNotFollowALinkInThePlaceOfTheResult(t *testing.T) {
	d := openDisk(t, storeDir(t))
	home := t.TempDir()
	secret := filepath.Join(home, "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"", cache.FilesDir} {
		dir := cachetest.Prepare(t, d, nil)
		link := filepath.Join(dir, place)
		if err := errors.Join(os.RemoveAll(link), os.Symlink(home, link)); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Put(context.Background(), cache.Draft{Dir: dir, Meta: cachetest.Meta("a")}); err == nil {
			t.Errorf("a link was stored in the place of %q", place)
		}
		if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("what it led to is now %v, %v", info.Mode(), err)
		}
	}
}

// Files beside the result are work files, or were put there by a command: none of them gets into the entry. A link with
// the name of a file of ours is not followed.
func TestPutKeepsNothingButTheFiles(t *testing.T) {
	d := openDisk(t, storeDir(t))
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := cachetest.Prepare(t, d, map[string]string{"f": "1"})
	work := filepath.Join(dir, "work", "private")
	err := errors.Join(os.MkdirAll(work, 0o755), os.WriteFile(filepath.Join(work, "f"), nil, 0o400), os.Chmod(work, 0),
		os.Symlink(victim, filepath.Join(dir, "meta")), os.Chmod(dir, 0o500))
	if err != nil {
		t.Fatal(err)
	}
	entry, err := d.Put(context.Background(), cache.Draft{Dir: dir, Meta: cachetest.Meta("a")})
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Dir(entry.Dir))
	if err != nil || len(left) != 2 || left[0].Name() != "meta" || !left[0].Type().IsRegular() ||
		left[1].Name() != cache.FilesDir {
		t.Errorf("the entry consists of %v, %v", left, err)
	}
	if text, err := os.ReadFile(victim); string(text) != "mine" {
		t.Errorf("a file elsewhere holds %q, %v", text, err)
	}
}

// TestHelperProcess is no test: it is the other process of TestScratchOfDeadProcesses.
func TestHelperProcess(t *testing.T) {
	dir := os.Getenv("BENCHGRAPH_TEST_STORE")
	if dir == "" {
		t.Skip("not a helper")
	}
	d, err := disk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	scratch, err := d.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("scratch:", scratch)
	time.Sleep(time.Minute) // until it is killed
}

func TestScratchOfDeadProcesses(t *testing.T) {
	dir := storeDir(t)
	helper := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$")
	helper.Env = append(os.Environ(), "BENCHGRAPH_TEST_STORE="+dir)
	stdout, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	defer helper.Process.Kill()
	buf := make([]byte, 1000)
	n, err := stdout.Read(buf)
	scratch, ok := strings.CutPrefix(strings.TrimSpace(string(buf[:n])), "scratch: ")
	if err != nil || !ok {
		t.Fatalf("helper: %q, %v", buf[:n], err)
	}
	d := openDisk(t, dir)
	mine, err := d.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.GC(context.Background(), cache.GCOptions{}); !errors.Is(err, cache.ErrBusy) {
		t.Errorf("GC beside a living process: %v", err)
	}
	openDisk(t, dir)
	for _, alive := range []string{scratch, mine} {
		if _, err := os.Stat(alive); err != nil {
			t.Errorf("the scratch directory of a living process: %v", err)
		}
	}
	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = helper.Wait()
	openDisk(t, dir)
	if _, err := os.Stat(scratch); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the scratch directory of a dead process is still there: %v", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
}

func TestCloseRemovesScratch(t *testing.T) {
	d, err := disk.Open(storeDir(t))
	if err != nil {
		t.Fatal(err)
	}
	scratch := cachetest.Prepare(t, d, map[string]string{"f": "1"})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Dir(filepath.Dir(scratch))); len(left) != 0 {
		t.Errorf("left in tmp: %v", left)
	}
}

func TestListRemoveVerify(t *testing.T) {
	d := openDisk(t, storeDir(t))
	ctx := context.Background()
	var keys []cache.Key
	for i := range 5 {
		keys = append(keys, cachetest.Put(t, d, fmt.Sprint(i), map[string]string{"f": fmt.Sprint(i)}).Key)
	}
	if err := errors.Join(d.Remove(keys[0]), d.Remove(keys[0])); err != nil {
		t.Fatal(err)
	}
	listed := map[cache.Key]string{}
	if err := d.List(ctx, nil, func(m cache.Meta) error { listed[m.Key] = m.Address; return nil }); err != nil {
		t.Fatal(err)
	}
	if len(listed) != 4 || listed[keys[1]] != `test.made["1"]` {
		t.Errorf("List: %v", listed)
	}
	entry, err := d.Get(ctx, keys[2], false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(filepath.Join(entry.Dir, "f"), 0o644),
		os.WriteFile(filepath.Join(entry.Dir, "f"), []byte("X"), 0o644)); err != nil {
		t.Fatal(err)
	}
	reports := map[cache.Key]error{}
	if err := d.Verify(ctx, func(k cache.Key, err error) { reports[k] = err }); err != nil {
		t.Fatal(err)
	}
	for key, err := range reports {
		if damaged := errors.Is(err, cache.ErrMiss); damaged != (key == keys[2]) {
			t.Errorf("Verify %s: %v", key.Short(), err)
		}
	}
	if len(reports) != 4 {
		t.Errorf("Verify looked at %d entries", len(reports))
	}
	stop := errors.New("stop")
	var wanted []string
	only := func(address string) bool { return address == listed[keys[1]] }
	if err := d.List(ctx, only, func(m cache.Meta) error {
		wanted = append(wanted, m.Address)
		return nil
	}); err != nil || len(wanted) != 1 || !only(wanted[0]) {
		t.Errorf("of one address, %v, %v", wanted, err)
	}
	if err := d.List(ctx, nil, func(cache.Meta) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("List: %v", err)
	}
}

func TestGC(t *testing.T) {
	ctx := context.Background()
	content := strings.Repeat("x", 100)
	for name, story := range map[string]struct {
		options cache.GCOptions
		stay    []string
	}{
		"nothing asked":         {cache.GCOptions{}, []string{"0", "1", "2", "3"}},
		"by age":                {cache.GCOptions{MaxAge: 36 * time.Hour}, []string{"0", "1"}},
		"by size, oldest first": {cache.GCOptions{MaxBytes: 250}, []string{"0", "1"}},
		"by reachability":       {cache.GCOptions{Keep: holds("1", "3")}, []string{"1", "3"}},
		"what is held stays":    {cache.GCOptions{MaxBytes: 150, Keep: holds("3")}, []string{"3"}},
		"held beyond the limit": {cache.GCOptions{MaxBytes: 1, Keep: holds("3", "2")}, []string{"2", "3"}},
		"room enough":           {cache.GCOptions{MaxBytes: 400}, []string{"0", "1", "2", "3"}},
	} {
		for _, dry := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, dry run %t", name, dry), func(t *testing.T) {
				d := openDisk(t, storeDir(t))
				for i := range 4 { // entry i was last used i days ago
					entry := cachetest.Put(t, d, fmt.Sprint(i), map[string]string{"f": content})
					used := time.Now().AddDate(0, 0, -i)
					if err := os.Chtimes(filepath.Join(filepath.Dir(entry.Dir), "meta"), used, used); err != nil {
						t.Fatal(err)
					}
				}
				options := story.options
				options.DryRun = dry
				result, err := d.GC(ctx, options)
				if err != nil {
					t.Fatal(err)
				}
				if result.Kept != len(story.stay) || len(result.Removed) != 4-len(story.stay) ||
					result.KeptBytes != int64(100*result.Kept) ||
					result.RemovedBytes != int64(100*len(result.Removed)) {
					t.Errorf("result: %+v", result)
				}
				left := map[string]bool{}
				if err := d.List(ctx, nil, func(m cache.Meta) error {
					left[m.Log[4:]] = true
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				want := story.stay
				if dry {
					want = []string{"0", "1", "2", "3"}
				}
				if got := slices.Sorted(maps.Keys(left)); !slices.Equal(got, want) {
					t.Errorf("left: %v, want %v", got, want)
				}
			})
		}
	}
}

func holds(names ...string) func(cache.Key) bool {
	held := map[cache.Key]bool{}
	for _, name := range names {
		held[cachetest.Meta(name).Key] = true
	}
	return func(k cache.Key) bool { return held[k] }
}

func TestGCClearsTheQuarantine(t *testing.T) {
	d := openDisk(t, storeDir(t))
	ctx := context.Background()
	entry := cachetest.Put(t, d, "a", map[string]string{"f": "1"})
	if err := errors.Join(os.Chmod(entry.Dir, 0o755), os.Remove(filepath.Join(entry.Dir, "f"))); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get(ctx, entry.Key, false); !errors.Is(err, cache.ErrMiss) {
		t.Fatal(err)
	}
	if result, err := d.GC(ctx, cache.GCOptions{}); err != nil || result.Quarantined != 1 {
		t.Errorf("GC: %+v, %v", result, err)
	}
	if result, err := d.GC(ctx, cache.GCOptions{}); err != nil || result.Quarantined != 0 {
		t.Errorf("GC: %+v, %v", result, err)
	}
}

func TestAUseKeepsAnEntryYoung(t *testing.T) {
	d := openDisk(t, storeDir(t))
	ctx := context.Background()
	entry := cachetest.Put(t, d, "a", map[string]string{"f": "1"})
	long := time.Now().AddDate(-1, 0, 0)
	if err := os.Chtimes(filepath.Join(filepath.Dir(entry.Dir), "meta"), long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get(ctx, entry.Key, false); err != nil {
		t.Fatal(err)
	}
	if result, err := d.GC(ctx, cache.GCOptions{MaxAge: time.Hour}); err != nil || result.Kept != 1 {
		t.Errorf("GC: %+v, %v", result, err)
	}
}

// The directory for removed entries is gone, as after somebody tidied up. Nothing else is removed in its place.
func TestRemovalWithoutAPlaceForItRemovesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := openDisk(t, dir)
	entry := putTree(t, d, "entry", map[string]string{"file": "text"})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = openDisk(t, dir)
	if err := os.RemoveAll(filepath.Join(dir, "tmp")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("precious", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(entry.Key); err == nil {
		t.Error("it was removed")
	}
	if err := fs.RemoveTree(""); err == nil {
		t.Error("a directory without a name was removed")
	}
	if _, err := os.Stat("precious"); err != nil {
		t.Error(err)
	}
}
