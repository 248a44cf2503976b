// Package cgroup reads what the control groups of Linux allow this process.
package cgroup

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Groups are the control groups of this process, as the files below Root say: those of /proc and /sys.
type Groups struct {
	Root fs.FS
	Line func(name string) string // returns the first line of a file, or nothing
}

// CPUs returns how many cores' worth of time the groups allow; 0: all.
func (g Groups) CPUs() float64 {
	least := 0.0
	consider := func(quota, period int64) {
		if cores := float64(quota) / float64(period); quota > 0 && period > 0 && (least == 0 || cores < least) {
			least = cores
		}
	}
	for _, dir := range g.groups("") {
		quota, period, _ := strings.Cut(g.Line(path.Join(dir, "cpu.max")), " ")
		consider(number(quota), number(period)) // "max" is no number and thus no limit
	}
	for _, dir := range g.groups("cpu") {
		consider(number(g.Line(path.Join(dir, "cpu.cfs_quota_us"))),
			number(g.Line(path.Join(dir, "cpu.cfs_period_us"))))
	}
	return least
}

// Memory returns how many bytes the groups allow; 0: all. Without a limit, version 1 tells a number beyond any memory.
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

// groups returns the directories of the control group that this process is in and of all groups above it that can be
// seen, as a limit of each of them holds. controller is empty for version 2.
func (g Groups) groups(controller string) []string {
	member, ok := g.membership(controller)
	if !ok {
		return nil
	}
	root, mount, ok := g.groupMount(controller)
	if !ok {
		return nil
	}
	// In a container the membership may be told as the host sees it, while only the part below root is mounted.
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

// membership returns the group of this process in the hierarchy of the controller.
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

// groupMount returns where the hierarchy of the controller is mounted, and which of its directories is.
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
