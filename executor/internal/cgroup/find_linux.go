// Package cgroup limits commands with control groups of Linux (version 2), where this process may make groups.
package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Controllers are the kernel's names of the controllers that limit commands.
var Controllers = []string{"cpu", "cpuset", "memory", "pids"}

// ErrVersion is the error for a machine with control groups of version 1.
var ErrVersion = errors.New("this machine has no control groups of version 2")

// ErrDelegation is the error if this process may not make groups with controllers.
var ErrDelegation = errors.New("no control group is delegated to this process")

// Find looks for a group in which this process may make groups, from its own group upward. It returns the one with
// the most Controllers, and of several the nearest. It changes nothing.
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

// mountPoint returns the directory at which control groups are mounted.
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

// rootAt returns a directory as Root, or nil if this process cannot make groups with controllers there. A group with
// processes cannot pass controllers on, so this process may have to leave its own group first. The root group is
// exempt from that rule.
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

// controllersIn returns the Controllers that a group's file lists.
func controllersIn(dir, file string) []string {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	listed := strings.Fields(string(text))
	return slices.DeleteFunc(slices.Clone(Controllers), func(c string) bool { return !slices.Contains(listed, c) })
}
