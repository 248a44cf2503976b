package fs_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

func write(t *testing.T, path string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
		os.WriteFile(path, []byte("text"), 0o644)); err != nil {
		t.Fatal(err)
	}
	return path
}

// Nothing is removed through a mount, be it one of the same file system, of another one, of a file, or the tree itself.
func TestRemoveTreeEntersNoMount(t *testing.T) {
	dir := needtest.Apart(t)
	if dir == "" {
		return
	}
	precious := write(t, filepath.Join(dir, "precious", "a", "b"))
	tree := filepath.Join(dir, "tree")
	gone := write(t, filepath.Join(tree, "z", "gone"))
	bound, file, memory := filepath.Join(tree, "out", "bound"), write(t, filepath.Join(tree, "file")),
		filepath.Join(tree, "memory")
	if err := errors.Join(os.MkdirAll(bound, 0o755), os.Mkdir(memory, 0o755)); err != nil {
		t.Fatal(err)
	}
	bind := func(from, to string) {
		t.Helper()
		if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	}
	bind(filepath.Join(dir, "precious"), bound)
	bind(precious, file)
	if err := unix.Mount("none", memory, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	kept := write(t, filepath.Join(memory, "kept"))

	mounts, err := fs.MountsBelow(tree)
	slices.Sort(mounts)
	if err != nil || !slices.Equal(mounts, []string{file, memory, bound}) {
		t.Errorf("mounts below: %v, %v", mounts, err)
	}
	err = fs.RemoveTree(tree)
	if err == nil {
		t.Fatal("no error")
	}
	for _, path := range []string{bound, file, memory} {
		if !strings.Contains(err.Error(), path+": it is a mount point") {
			t.Errorf("%s is not told: %v", path, err)
		}
	}
	for _, path := range []string{precious, kept, filepath.Join(bound, "a", "b")} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(gone); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is beside the mounts is not gone: %v", err)
	}
	for _, path := range []string{bound, file, memory} {
		if err := unix.Unmount(path, 0); err != nil {
			t.Fatal(err)
		}
	}

	bind(filepath.Join(dir, "precious"), tree)
	if err := fs.RemoveTree(tree); err == nil || !strings.Contains(err.Error(), tree+": it is a mount point") {
		t.Errorf("the tree itself is mounted: %v", err)
	}
	if err := unix.Unmount(tree, 0); err != nil {
		t.Fatal(err)
	}
	if err := fs.RemoveTree(tree); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

// Pipes are removed without being opened, links without being followed, and depth costs neither descriptors nor
// patience.
func TestRemoveTreeOfHostileShapes(t *testing.T) {
	dir := t.TempDir()
	outside := write(t, filepath.Join(dir, "outside", "file"))
	tree := filepath.Join(dir, "tree")
	write(t, filepath.Join(tree, "closed", "file"))
	if err := errors.Join(
		unix.Mkfifo(filepath.Join(tree, "pipe"), 0o600), os.Symlink(filepath.Join(dir, "outside"),
			filepath.Join(tree, "link")),
		os.Symlink("loop", filepath.Join(tree, "loop")), os.Mkdir(filepath.Join(tree, ".deep-1"), 0o755),
		os.Chmod(filepath.Join(tree, "closed"), 0o111), os.WriteFile(filepath.Join(tree, "file"), nil, 0),
	); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		next, err := func() (*os.Root, error) {
			if err := root.Mkdir("dddddddddd", 0o755); err != nil {
				return nil, err
			}
			return root.OpenRoot("dddddddddd")
		}()
		if err != nil {
			t.Fatal(err)
		}
		root.Close()
		root = next
	}
	root.Close()
	began := time.Now()
	if err := fs.RemoveTree(tree); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	if _, err := os.Lstat(tree); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
	if err := fs.RemoveTree(filepath.Join(tree, "not", "there")); err != nil {
		t.Error(err)
	}
}
