package device

import (
	"bufio"
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// cpuQuota returns how many cores the control groups allow, rounded up; 0: all.
func (m machine) cpuQuota() int {
	least := 0
	consider := func(quota, period int64) {
		if quota <= 0 || period <= 0 {
			return
		}
		if n := int((quota-1)/period + 1); least == 0 || n < least {
			least = n
		}
	}
	for _, dir := range m.groups("") {
		quota, period, ok := strings.Cut(m.line(path.Join(dir, "cpu.max")), " ")
		if ok { // "max" is no number and thus no limit
			consider(number(quota), number(period))
		}
	}
	for _, dir := range m.groups("cpu") {
		consider(number(m.line(path.Join(dir, "cpu.cfs_quota_us"))),
			number(m.line(path.Join(dir, "cpu.cfs_period_us"))))
	}
	return least
}

// memoryLimit returns how many bytes the control groups allow; 0: all.
func (m machine) memoryLimit() int64 {
	least := int64(0)
	consider := func(n int64) {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	for _, dir := range m.groups("") {
		consider(number(m.line(path.Join(dir, "memory.max"))))
	}
	for _, dir := range m.groups("memory") {
		consider(number(m.line(path.Join(dir, "memory.limit_in_bytes")))) // "no limit" is a number beyond any memory
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
func (m machine) groups(controller string) []string {
	member, ok := m.membership(controller)
	if !ok {
		return nil
	}
	root, mount, ok := m.groupMount(controller)
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
func (m machine) membership(controller string) (string, bool) {
	text, err := fs.ReadFile(m.root, "proc/self/cgroup")
	if err != nil {
		return "", false
	}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		f := strings.SplitN(s.Text(), ":", 3) // 4:memory:/path
		if len(f) == 3 && slices.Contains(strings.Split(f[1], ","), controller) {
			return f[2], true
		}
	}
	return "", false
}

// groupMount returns where the hierarchy of the controller is mounted, and which of its directories is.
func (m machine) groupMount(controller string) (root, mount string, ok bool) {
	text, err := fs.ReadFile(m.root, "proc/self/mountinfo")
	if err != nil {
		return "", "", false
	}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		// 32 31 0:29 /root /mount rw,relatime - cgroup cgroup rw,cpu
		left, right, found := strings.Cut(s.Text(), " - ")
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
