package fs

import "golang.org/x/sys/unix"

// NoExec reports whether a directory, or its nearest existing parent, is on a mount from which programs cannot be
// executed.
func NoExec(dir string) bool {
	var at unix.Statfs_t
	return unix.Statfs(Nearest(dir), &at) == nil && at.Flags&unix.ST_NOEXEC != 0
}
