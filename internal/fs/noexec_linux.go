package fs

import "golang.org/x/sys/unix"

// NoExec reports whether a directory, or the nearest one above it that exists, is on a mount from which no program can
// be run.
func NoExec(dir string) bool {
	var at unix.Statfs_t
	return unix.Statfs(Nearest(dir), &at) == nil && at.Flags&unix.ST_NOEXEC != 0
}
