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

// Used is what files take of a file system.
type Used struct {
	Bytes, Files int64 // on disk; every file takes 512 bytes at least, and directories are files
	Hidden       bool  // some directories could not be read, because of their mode or the length of their path
}

// Usage returns what the files below the directories take. A file with several names counts once, and so does a
// directory inside one that is listed before it. Usage enters no other file systems, and leaves out files that are
// removed meanwhile. With reveal, directories of this user are made readable while their files are counted (Linux).
func Usage(reveal bool, dirs ...string) (Used, error) {
	u := usage{reveal: reveal, linked: map[[2]uint64]bool{}}
	for i, dir := range dirs {
		if slices.ContainsFunc(dirs[:i], func(other string) bool { return Below(dir, other) }) {
			continue
		}
		var root syscall.Stat_t
		if err := syscall.Lstat(dir, &root); err != nil {
			return Used{}, &fs.PathError{Op: "lstat", Path: dir, Err: err}
		}
		u.device = uint64(root.Dev)
		err := filepath.WalkDir(dir, u.visit)
		u.leave("")
		if err != nil {
			return Used{}, err
		}
	}
	return u.Used, nil
}

// usage is one count of files.
type usage struct {
	Used
	reveal   bool
	device   uint64             // of the file system
	linked   map[[2]uint64]bool // files with several names, by device and inode
	revealed []revealed         // the directories around the file, from the outermost on
}

// revealed is a directory that hide makes unreadable again.
type revealed struct {
	dir  string
	hide func()
}

// leave hides the revealed directories that a file is not in: each is open, and a process has few open files.
func (u *usage) leave(name string) {
	for n := len(u.revealed); n > 0 && !Below(name, u.revealed[n-1].dir); n-- {
		u.revealed[n-1].hide()
		u.revealed = u.revealed[:n-1]
	}
}

// visit counts one file.
func (u *usage) visit(name string, d fs.DirEntry, err error) error {
	const block = 512 // the unit of Stat_t.Blocks, whatever the file system
	u.leave(name)
	if err != nil {
		return u.passing(err)
	}
	info, err := d.Info()
	if err != nil {
		return u.passing(err)
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return nil
	case uint64(s.Dev) != u.device && d.IsDir():
		return filepath.SkipDir
	case uint64(s.Dev) != u.device:
		return nil
	case !d.IsDir() && s.Nlink > 1:
		id := [2]uint64{uint64(s.Dev), s.Ino}
		if u.linked[id] {
			return nil
		}
		u.linked[id] = true
	case d.IsDir() && u.reveal && info.Mode()&0o500 != 0o500:
		if hide, ok := reveal(name); ok {
			u.revealed = append(u.revealed, revealed{name, hide})
		}
	}
	u.Bytes, u.Files = u.Bytes+max(1, s.Blocks)*block, u.Files+1
	return nil
}

// passing returns nil for errors that are normal in a directory in use.
func (u *usage) passing(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENAMETOOLONG) {
		u.Hidden = true
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
