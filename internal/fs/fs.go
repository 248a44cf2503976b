// Package fs holds operations on files that all packages need and that must be correct: replacing files atomically,
// locking, removing trees without leaving them, and opening files in deep trees.
package fs

import (
	"os"

	"golang.org/x/sys/unix"
)

// IsRegular reports whether a name in a directory is a regular file, and no link to one.
func IsRegular(dir *os.File, name string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
}
