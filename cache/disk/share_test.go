package disk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// putTree stores a result with these files, under a key made from the name.
func putTree(t *testing.T, d *disk.Disk, name string, files map[string]string) cache.Entry {
	t.Helper()
	dir, err := d.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range files {
		path, executable := strings.CutPrefix(path, "x:")
		at := filepath.Join(dir, cache.FilesDir, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if executable {
			mode = 0o755
		}
		if err := os.WriteFile(at, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	text := cache.Describe(name)
	e, err := d.Put(t.Context(), cache.Draft{Meta: cache.Meta{Key: text.Key(), Text: text.Text()}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func inodeOf(t *testing.T, e cache.Entry, path string) (ino, names uint64) {
	t.Helper()
	info, err := os.Lstat(filepath.Join(e.Dir, path))
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	return st.Ino, uint64(st.Nlink)
}

func openStore(t *testing.T) *disk.Disk {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	d, err := disk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(d.Close(), fs.RemoveTree(dir)); err != nil { // entries are read-only
			t.Error(err)
		}
	})
	return d
}

func many(n int, change string) map[string]string {
	files := map[string]string{"empty": "", ".benchgraph-0": "a name as the store makes them " + change,
		"x:run": "text of 3"}
	for i := range n {
		files[fmt.Sprintf("d%d/f%d", i%7, i)] = fmt.Sprintf("text of %d", i)
	}
	if change != "" {
		files["d0/f0"] = change
	}
	return files
}

// Equal files of entries are one file on the disk, and each entry is still whole.
func TestEntriesShareEqualFiles(t *testing.T) {
	d := openStore(t)
	one, two := putTree(t, d, "one", many(40, "")), putTree(t, d, "two", many(40, "another"))
	for path, shared := range map[string]bool{"d1/f1": true, "d0/f7": true, "d0/f0": false, ".benchgraph-0": false,
		"empty": false, "run": true} {
		a, _ := inodeOf(t, one, path)
		b, _ := inodeOf(t, two, path)
		if (a == b) != shared {
			t.Errorf("%s: shared %v, want %v", path, a == b, shared)
		}
	}
	// A program and a text of the same bytes are two files.
	if program, _ := inodeOf(t, one, "run"); program == first(inodeOf(t, one, "d3/f3")) {
		t.Error("a program and a text are one file")
	}
	small := map[string]string{"a": "text of 1", "b": "text of 2"}
	if _, names := inodeOf(t, putTree(t, d, "small", small), "a"); names != 1 {
		t.Errorf("a file of a small result has %d names", names)
	}
	large := map[string]string{"large": strings.Repeat("x", 64<<10)}
	if a, b := putTree(t, d, "l1", large), putTree(t, d, "l2",
		large); first(inodeOf(t, a, "large")) != first(inodeOf(t, b, "large")) {
		t.Error("a large file is not shared")
	}
	for _, e := range []cache.Entry{one, two} {
		if _, err := d.Get(t.Context(), e.Key, true); err != nil {
			t.Error(err)
		}
	}
	// After a removal, no file is left that no entry has, and the other entries still have theirs.
	if err := d.Remove(one.Key); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get(t.Context(), two.Key, true); err != nil {
		t.Error(err)
	}
	if err := d.Remove(two.Key); err != nil {
		t.Fatal(err)
	}
	if n := blobs(t, d, one); n != 1 {
		t.Errorf("%d names are left, want that of the large file", n)
	}
}

func first(ino, _ uint64) uint64 { return ino }

// blobs returns the number of files that the store finds by their content.
func blobs(t *testing.T, _ *disk.Disk, e cache.Entry) int {
	t.Helper()
	store := filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(e.Dir))))
	names, err := filepath.Glob(filepath.Join(store, "blobs", "??", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// A shared file that is damaged makes each of its entries damaged, and no new entry takes it over.
func TestADamagedSharedFileIsForgotten(t *testing.T) {
	d := openStore(t)
	one, two := putTree(t, d, "one", many(40, "")), putTree(t, d, "two", many(40, "another"))
	at := filepath.Join(one.Dir, "d1/f1")
	if err := errors.Join(os.Chmod(at, 0o644), os.WriteFile(at, []byte("TEXT OF 1"), 0o644),
		os.Chmod(at, 0o444)); err != nil {
		t.Fatal(err)
	}
	for _, e := range []cache.Entry{one, two} {
		if _, err := d.Get(t.Context(), e.Key, true); !errors.Is(err, cache.ErrMiss) {
			t.Errorf("%v", err)
		}
	}
	again := putTree(t, d, "one", many(40, ""))
	if _, err := d.Get(t.Context(), again.Key, true); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(again.Dir, "d1/f1")); err != nil ||
		!bytes.Equal(text, []byte("text of 1")) {
		t.Errorf("%q, %v", text, err)
	}
}

// A garbage collection also removes the shared names of files that were quarantined.
func TestGCTakesFilesThatNoEntryHas(t *testing.T) {
	d := openStore(t)
	one := putTree(t, d, "one", many(40, ""))
	if blobs(t, d, one) == 0 {
		t.Fatal("nothing is shared")
	}
	store := filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(one.Dir))))
	if err := errors.Join(os.MkdirAll(filepath.Join(store, "blobs", "ab"), 0o755),
		os.WriteFile(filepath.Join(store, "blobs", "ab", strings.Repeat("ab", 32)), []byte("left"),
			0o444)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.GC(context.Background(), cache.GCOptions{MaxBytes: 1}); err != nil {
		t.Fatal(err)
	}
	if n := blobs(t, d, one); n != 0 {
		t.Errorf("%d names are left", n)
	}
}
