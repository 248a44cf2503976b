package executor

import (
	"path/filepath"
	"slices"
)

// private are directories in which the system keeps what is nobody's but its users' or its daemons'.
var private = []string{"/home", "/root", "/run"}

// Covers reports whether a program in the sandbox finds something else at an absolute path than this machine has there.
func (o *Sandbox) Covers(path string) bool {
	below := func(dir string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel)
	}
	if slices.ContainsFunc(o.Shown, func(m Mount) bool { return below(m.Host) }) {
		return false
	}
	return slices.ContainsFunc(slices.Concat(private, []string{"/tmp", "/var/tmp", "/dev/shm"}, o.Hidden), below)
}
