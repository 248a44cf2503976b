// Package fs holds operations on files that all packages need and that must be correct: replacing files atomically,
// locking, removing trees without leaving them, and opening files in deep trees.
package fs

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Below reports whether path is dir or inside it. It compares names and does not follow links.
func Below(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Cause returns the system's error without the operation and the path, for messages that name the file themselves.
func Cause(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// IsRegular reports whether a name in a directory is a regular file, and no link to one.
func IsRegular(dir *os.File, name string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
}
