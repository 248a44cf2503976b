package fs_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

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
				replace := fs.Replace
				if i%2 == 1 {
					replace = fs.ReplaceSoon
				}
				if err := replace(path, part, part); err != nil {
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

// A failed write leaves the old content, and no other file.
func TestFailuresLeaveTheOldFile(t *testing.T) {
	dir := t.TempDir()
	place := filepath.Join(dir, "place")
	if err := os.MkdirAll(filepath.Join(place, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := fs.Replace(place, []byte("x")); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a directory was replaced, or the error does not say that it is one: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	if err := fs.Replace(filepath.Join(dir, "none", "file"), nil); !os.IsNotExist(err) {
		t.Errorf("into no directory: %v", err)
	}
}

// Special files are written to and stay, also as the target of a link. A rename by root would replace /dev/null.
func TestSpecialFilesStay(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(unix.Mkfifo(pipe, 0o600), os.Symlink("pipe", link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, link} {
		got := make(chan string)
		go func() {
			text, _ := os.ReadFile(pipe)
			got <- string(text)
		}()
		if err := fs.Replace(path, []byte("a"), []byte("b")); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(pipe); err != nil || info.Mode().Type() != os.ModeNamedPipe {
			t.Fatalf("%s: %v, %v", path, info.Mode(), err)
		}
		if text := <-got; text != "ab" {
			t.Errorf("%s: %q was read", path, text)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("left: %v", left)
	}
}

// The file is written that a link leads to, and the link stays; a link that leads nowhere is replaced.
func TestLinksAreFollowed(t *testing.T) {
	dir := t.TempDir()
	link, nowhere := filepath.Join(dir, "link"), filepath.Join(dir, "nowhere")
	file := filepath.Join(dir, "below", "file")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("old"), 0o600),
		os.Symlink("below/file", link), os.Symlink("none", nowhere)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(fs.Replace(link, []byte("new")), fs.Replace(nowhere, []byte("new"))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, nowhere} {
		info, err := os.Lstat(path)
		text, _ := os.ReadFile(path)
		if err != nil || !info.Mode().IsRegular() || string(text) != "new" {
			t.Errorf("%s: %v, %q, %v", path, info.Mode(), text, err)
		}
	}
	if at, err := os.Readlink(link); err != nil || at != "below/file" {
		t.Errorf("the link: %q, %v", at, err)
	}
}
