package fs

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Free returns the bytes and the number of files that are still free on the file system of a directory, for every
// user; 0: not known.
func Free(dir string) (bytes, files int64) {
	var f unix.Statfs_t
	if err := unix.Statfs(dir, &f); err != nil {
		return 0, 0
	}
	if files = int64(f.Ffree); f.Files == 0 { // without a limit of its own
		files = math.MaxInt64 / 2
	}
	return int64(f.Bavail) * int64(f.Bsize), files
}

// Count returns the number of files and directories below a directory, including itself, as far as they are readable.
func Count(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(string, fs.DirEntry, error) error {
		n++
		return nil
	})
	return n
}

// Usage returns the bytes on disk of the files below the directories. A file with several names counts once, and so
// does a directory inside one that is listed before it. Usage enters no other file systems, and leaves out unreadable
// directories and files that are removed meanwhile.
func Usage(dirs ...string) (int64, error) {
	const block = 512 // the unit of Stat_t.Blocks, whatever the file system
	total, linked := int64(0), map[[2]uint64]bool{}
	for i, dir := range dirs {
		if slices.ContainsFunc(dirs[:i], func(other string) bool { return Below(dir, other) }) {
			continue
		}
		var root syscall.Stat_t
		if err := syscall.Lstat(dir, &root); err != nil {
			return 0, &fs.PathError{Op: "lstat", Path: dir, Err: err}
		}
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return passing(err)
			}
			info, err := d.Info()
			if err != nil {
				return passing(err)
			}
			s, ok := info.Sys().(*syscall.Stat_t)
			switch {
			case !ok:
				return nil
			case s.Dev != root.Dev && d.IsDir():
				return filepath.SkipDir
			case s.Dev != root.Dev:
				return nil
			case !d.IsDir() && s.Nlink > 1:
				id := [2]uint64{uint64(s.Dev), s.Ino}
				if linked[id] {
					return nil
				}
				linked[id] = true
			}
			total += s.Blocks * block
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return total, nil
}

// passing returns nil for errors that are normal in a directory in use.
func passing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}
