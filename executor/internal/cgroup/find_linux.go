// Package cgroup bounds what commands use of the machine, by control groups of Linux (version 2) that this process may
// make.
package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Controllers are those that bound commands, by the names that the kernel has for them.
var Controllers = []string{"cpu", "cpuset", "memory", "pids"}

// ErrVersion is the error where the controllers are those of version 1.
var ErrVersion = errors.New("this machine has no control groups of version 2")

// ErrDelegation is the error where this process may make no group that has a controller.
var ErrDelegation = errors.New("no control group is delegated to this process")

// Find looks for the nearest group, from that of this process upward, in which this process may make groups with the
// most of Controllers. It changes nothing.
func Find() (*Root, error) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	top, ok := mountPoint(string(info))
	if !ok {
		return nil, ErrVersion
	}
	if len(controllersIn(top, "cgroup.controllers")) == 0 {
		return nil, ErrVersion
	}
	var best *Root
	for dir := filepath.Join(top, ownGroup(string(own))); ; dir = filepath.Dir(dir) {
		if r := rootAt(dir, best == nil); r != nil && (best == nil || len(r.controllers) > len(best.controllers)) {
			best = r
		}
		if rel, err := filepath.Rel(top, dir); err != nil || rel == "." || !filepath.IsLocal(rel) {
			break
		}
	}
	if best == nil {
		return nil, ErrDelegation
	}
	return best, nil
}

// mountPoint returns where the groups are mounted.
func mountPoint(mountinfo string) (string, bool) {
	for line := range strings.Lines(mountinfo) {
		mount, kind, _ := strings.Cut(line, " - ")
		fields := strings.Fields(mount)
		if len(fields) >= 5 && strings.HasPrefix(kind, "cgroup2 ") && fields[3] == "/" {
			return fields[4], true
		}
	}
	return "", false
}

// ownGroup returns the path of this process's group.
func ownGroup(groups string) string {
	for line := range strings.Lines(groups) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSpace(path)
		}
	}
	return "/"
}

// rootAt returns what groups made in a directory would have; nil: nothing, or none can be made. The group of this
// process may have to be left by it, since a group passes controllers on or has processes. The first of all groups is
// exempt from that.
func rootAt(dir string, own bool) *Root {
	for _, name := range []string{"", "cgroup.procs"} {
		if unix.Access(filepath.Join(dir, name), unix.W_OK) != nil {
			return nil
		}
	}
	r := &Root{dir: dir, controllers: controllersIn(dir, "cgroup.subtree_control")}
	all := controllersIn(dir, "cgroup.controllers")
	if len(all) > len(r.controllers) && unix.Access(filepath.Join(dir, "cgroup.subtree_control"), unix.W_OK) == nil {
		procs, err := processes(dir)
		_, first := os.Stat(filepath.Join(dir, "cgroup.type"))
		alone := own && err == nil && len(procs) == 1 && procs[0] == os.Getpid()
		if errors.Is(first, os.ErrNotExist) || err == nil && len(procs) == 0 || alone {
			r.controllers, r.leave = all, alone && first == nil
		}
	}
	if len(r.controllers) == 0 {
		return nil
	}
	return r
}

// controllersIn returns which of Controllers a file of a group lists.
func controllersIn(dir, file string) []string {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	listed := strings.Fields(string(text))
	return slices.DeleteFunc(slices.Clone(Controllers), func(c string) bool { return !slices.Contains(listed, c) })
}
