package fs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// A directory of a process that lives stays, and one that a killed process left is removed, with what cannot be
// written to. Others' files are not touched.
func TestTemporary(t *testing.T) {
	in := t.TempDir()
	left, other, link := filepath.Join(in, "mine-1"), filepath.Join(in, "other-1"), filepath.Join(in, "mine-link")
	for _, dir := range []string{filepath.Join(left, "sub"), other} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(in, "mine-file")
	for _, err := range []error{os.WriteFile(filepath.Join(left, "sub", "a"), nil, 0o400),
		os.Chmod(filepath.Join(left, "sub"), 0o500), os.Symlink(other, link), os.WriteFile(file, nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	first, err := fs.NewTemporary(in, "mine-")
	if err != nil {
		t.Fatal(err)
	}
	second, err := fs.NewTemporary(in, "mine-")
	if err != nil || second.Path == first.Path {
		t.Fatalf("%v, %v", second, err)
	}
	if err := second.Remove(); err != nil {
		t.Error(err)
	}
	for path, there := range map[string]bool{left: false, other: true, link: true, file: true, first.Path: true,
		second.Path: false} {
		if _, err := os.Lstat(path); (err == nil) != there {
			t.Errorf("%s is there: %v", path, !there)
		}
	}
}
