// Package cgroup reads the limits of this process's control groups (Linux).
package cgroup

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Groups are the control groups of this process, read from the files of /proc and /sys below Root.
type Groups struct {
	Root fs.FS
	Line func(name string) string // returns the first line of a file; empty if there is none
}

// CPUs returns how many cores' worth of time the groups allow; 0: no limit.
func (g Groups) CPUs() float64 {
	least := 0.0
	consider := func(quota, period int64) {
		if cores := float64(quota) / float64(period); quota > 0 && period > 0 && (least == 0 || cores < least) {
			least = cores
		}
	}
	for _, dir := range g.groups("") {
		quota, period, _ := strings.Cut(g.Line(path.Join(dir, "cpu.max")), " ")
		consider(number(quota), number(period)) // "max" is no number and so no limit
	}
	for _, dir := range g.groups("cpu") {
		consider(number(g.Line(path.Join(dir, "cpu.cfs_quota_us"))),
			number(g.Line(path.Join(dir, "cpu.cfs_period_us"))))
	}
	return least
}

// Memory returns how many bytes the groups allow; 0: no limit. Version 1 writes a huge number for no limit.
func (g Groups) Memory() int64 {
	least := int64(0)
	consider := func(n int64) {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	for _, dir := range g.groups("") {
		consider(number(g.Line(path.Join(dir, "memory.max"))))
	}
	for _, dir := range g.groups("memory") {
		consider(number(g.Line(path.Join(dir, "memory.limit_in_bytes"))))
	}
	return least
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// groups returns the directories of this process's control group and of all visible groups above it; each may have a
// limit. controller is empty for version 2.
func (g Groups) groups(controller string) []string {
	member, ok := g.membership(controller)
	if !ok {
		return nil
	}
	root, mount, ok := g.groupMount(controller)
	if !ok {
		return nil
	}
	// In a container, the path of the group may be the host's, while only the part below root is mounted.
	below := "/"
	if rest, ok := strings.CutPrefix(member, strings.TrimSuffix(root, "/")); ok && (rest == "" || rest[0] == '/') {
		below = path.Clean("/" + rest)
	}
	var dirs []string
	for {
		dir := strings.TrimPrefix(path.Join(mount, below), "/")
		if fs.ValidPath(dir) {
			dirs = append(dirs, dir)
		}
		if below == "/" {
			return dirs
		}
		below = path.Dir(below)
	}
}

// membership returns the group of this process in a controller's hierarchy.
func (g Groups) membership(controller string) (string, bool) {
	text, err := fs.ReadFile(g.Root, "proc/self/cgroup")
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3) // 4:memory:/path
		if len(f) == 3 && slices.Contains(strings.Split(f[1], ","), controller) {
			return f[2], true
		}
	}
	return "", false
}

// groupMount returns the mount point of a controller's hierarchy, and which of its directories is mounted.
func (g Groups) groupMount(controller string) (root, mount string, ok bool) {
	text, err := fs.ReadFile(g.Root, "proc/self/mountinfo")
	if err != nil {
		return "", "", false
	}
	for line := range strings.Lines(string(text)) {
		// 32 31 0:29 /root /mount rw,relatime - cgroup cgroup rw,cpu
		left, right, found := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !found || len(l) < 5 || len(r) < 3 {
			continue
		}
		v2 := controller == "" && r[0] == "cgroup2"
		v1 := controller != "" && r[0] == "cgroup" && slices.Contains(strings.Split(r[2], ","), controller)
		if v1 || v2 {
			return l[3], l[4], true
		}
	}
	return "", "", false
}
