package fs_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// A command can hide files from Usage by the modes of their directories only without reveal, and the modes stay.
func TestUsageRevealsDirectories(t *testing.T) {
	top := t.TempDir()
	const size = 1 << 20
	hidden := map[string]os.FileMode{filepath.Join(top, "a"): 0, filepath.Join(top, "b"): 0o600,
		filepath.Join(top, "c", "d"): 0o111}
	for dir := range hidden {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "sub"), 0o755), os.WriteFile(filepath.Join(dir, "sub",
			"file"), make([]byte, size), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	owned(t, top)
	for dir, mode := range hidden {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	asOwner(t, func() {
		if u, err := fs.Usage(false, top); u.Bytes >= size || !u.Hidden || err != nil {
			t.Errorf("without reveal: %+v, %v", u, err)
		}
		if u, err := fs.Usage(true, top); u.Bytes < 3*size || u.Files != 11 || u.Hidden || err != nil {
			t.Errorf("with reveal: %+v, %v", u, err)
		}
	})
	for dir, mode := range hidden {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
	}
}

// Hidden directories beside each other are not all open at the same time.
func TestUsageRevealsManyDirectories(t *testing.T) {
	top := t.TempDir()
	const count, size = 200, 8 << 10
	dir := func(i int) string { return filepath.Join(top, strconv.Itoa(i)) }
	for i := range count {
		if err := errors.Join(os.Mkdir(dir(i), 0o755), os.WriteFile(filepath.Join(dir(i), "file"), make([]byte, size),
			0o644)); err != nil {
			t.Fatal(err)
		}
	}
	owned(t, top)
	for i := range count {
		if err := os.Chmod(dir(i), 0); err != nil {
			t.Fatal(err)
		}
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := unix.Rlimit{Cur: count / 2, Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	asOwner(t, func() {
		if u, err := fs.Usage(true, top); u.Bytes < count*size || u.Hidden || err != nil {
			t.Errorf("%+v, %v", u, err)
		}
	})
	for i := range count {
		if info, err := os.Stat(dir(i)); err != nil || info.Mode().Perm() != 0 {
			t.Fatalf("%s: %v, %v", dir(i), info.Mode(), err)
		}
	}
}

// A directory whose path is too long hides only its own files.
func TestUsageCountsBesideALongPath(t *testing.T) {
	top := t.TempDir()
	if err := os.WriteFile(filepath.Join(top, "z"), make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	at, err := os.OpenRoot(top)
	for range 20 { // longer than PATH_MAX
		if err != nil {
			t.Fatal(err)
		}
		defer at.Close()
		long := strings.Repeat("d", 250)
		if err = at.Mkdir(long, 0o755); err == nil {
			at, err = at.OpenRoot(long)
		}
	}
	if u, err := fs.Usage(true, top); u.Bytes < 1<<20 || !u.Hidden || err != nil {
		t.Errorf("%+v, %.80v", u, err)
	}
}

// Empty files take room, too.
func TestUsageCountsEmptyFiles(t *testing.T) {
	top := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(top, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if u, err := fs.Usage(false, top); u.Bytes < 4*512 || u.Files != 4 || err != nil {
		t.Errorf("%+v, %v", u, err)
	}
}

const nobody = 65534

// owned gives a tree to nobody when the tests run as root, who may read everything.
func owned(t *testing.T, top string) {
	if os.Geteuid() != 0 {
		return
	}
	err := filepath.WalkDir(top, func(name string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(name, nobody, nobody))
	})
	if err = errors.Join(err, os.Chmod(filepath.Dir(top), 0o755)); err != nil {
		t.Fatal(err)
	}
}

// asOwner calls f as the owner of an owned tree.
func asOwner(t *testing.T, f func()) {
	if os.Geteuid() != 0 {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	set := func(id uintptr) {
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), id, ^uintptr(0)); errno != 0 {
			t.Fatal(errno)
		}
	}
	set(nobody)
	defer set(0)
	f()
}
