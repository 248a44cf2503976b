package flock_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/internal/flock"
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
	if err := flock.Try(a, flock.Shared); err != nil {
		t.Fatal(err)
	}
	if err := flock.Try(b, flock.Shared); err != nil {
		t.Fatal("two readers: ", err)
	}
	if err := flock.Try(c, flock.Exclusive); !flock.Held(err) {
		t.Errorf("a writer beside readers: %v", err)
	}
	if err := flock.Within(c, flock.Exclusive, time.Millisecond); !flock.Held(err) {
		t.Errorf("a writer that waits a moment: %v", err)
	}
	if err := flock.Unlock(a); err != nil {
		t.Error(err)
	}
	b.Close()
	if err := flock.Wait(c, flock.Exclusive); err != nil {
		t.Errorf("a writer after readers: %v", err)
	}
	if err := flock.Try(a, flock.Shared); !flock.Held(err) {
		t.Errorf("a reader beside a writer: %v", err)
	}
}

func TestAFileThatWasReplacedIsNotAtItsPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f := opened(t, path)
	if !flock.IsAt(f, path) {
		t.Error("the file is not at its path")
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if flock.IsAt(f, path) {
		t.Error("a file is at a path of nothing")
	}
	if err := os.Symlink(path+".old", path); err != nil {
		t.Fatal(err)
	}
	if flock.IsAt(f, path) {
		t.Error("a link to a file is the file")
	}
}
