package fs_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// A reader sees one writer's content, whole, while many write, and nothing is left beside the file.
func TestReadersSeeWholeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var writers sync.WaitGroup
	for i := range 8 {
		part := bytes.Repeat([]byte{byte('a' + i)}, 10_000)
		writers.Go(func() {
			for range 20 {
				if err := fs.Replace(path, part, part); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		text, err := os.ReadFile(path)
		if err == nil && (len(text) != 20_000 || bytes.Count(text, text[:1]) != 20_000) {
			t.Fatalf("%d bytes of several writers", len(text))
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// What cannot be written leaves the old content, and nothing beside it.
func TestFailuresLeaveTheOldFile(t *testing.T) {
	dir := t.TempDir()
	place := filepath.Join(dir, "place")
	if err := os.MkdirAll(filepath.Join(place, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := fs.Replace(place, []byte("x")); err == nil {
		t.Error("a directory was replaced")
	}
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link") // as /dev/stdout is one
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink(pipe, link)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, link} {
		before, _ := os.Lstat(name)
		err := fs.Replace(name, []byte("x"))
		if after, _ := os.Lstat(name); err == nil || !os.SameFile(before, after) {
			t.Errorf("%s was replaced (%v)", name, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 3 {
		t.Errorf("left: %v", left)
	}
	if err := fs.Replace(filepath.Join(dir, "none", "file"), nil); !os.IsNotExist(err) {
		t.Errorf("into no directory: %v", err)
	}
}
