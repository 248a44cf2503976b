package fs_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/internal/fs"
)

func opened(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestLocksExclude(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	a, b, c := opened(t, path), opened(t, path), opened(t, path)
	if err := fs.TryLock(a, fs.Shared); err != nil {
		t.Fatal(err)
	}
	if err := fs.TryLock(b, fs.Shared); err != nil {
		t.Fatal("two readers: ", err)
	}
	if err := fs.TryLock(c, fs.Exclusive); !fs.Held(err) {
		t.Errorf("a writer beside readers: %v", err)
	}
	if err := fs.LockWithin(c, fs.Exclusive, time.Millisecond); !fs.Held(err) {
		t.Errorf("a writer that waits a moment: %v", err)
	}
	if err := fs.Unlock(a); err != nil {
		t.Error(err)
	}
	b.Close()
	if err := fs.Lock(c, fs.Exclusive); err != nil {
		t.Errorf("a writer after readers: %v", err)
	}
	if err := fs.TryLock(a, fs.Shared); !fs.Held(err) {
		t.Errorf("a reader beside a writer: %v", err)
	}
}

func TestAFileThatWasReplacedIsNotAtItsPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f := opened(t, path)
	if !fs.IsAt(f, path) {
		t.Error("the file is not at its path")
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if fs.IsAt(f, path) {
		t.Error("a file is at a path of nothing")
	}
	if err := os.Symlink(path+".old", path); err != nil {
		t.Fatal(err)
	}
	if fs.IsAt(f, path) {
		t.Error("a link to a file is the file")
	}
}
