// Package process names processes of this machine for people.
package process

import (
	"bytes"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"github.com/benchgraph/benchgraph/internal/printable"
)

// Process is a program that runs, such as on a GPU.
type Process struct {
	PID  int    `json:"pid"`
	User string `json:"user,omitempty"` // name, else number; empty: not to be seen from here
	Name string `json:"name,omitempty"` // of the program, as it calls itself
	Used int64  `json:"used_bytes"`     // of a GPU; 0: not told
}

// Identify finds out whose process it is and what it is called, as far as it can be seen from here.
func (p *Process) Identify() {
	dir := fmt.Sprintf("/proc/%d", p.PID)
	info, err := os.Stat(dir)
	if err != nil {
		return
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		p.User = strconv.Itoa(int(stat.Uid))
		if u, err := user.LookupId(p.User); err == nil {
			p.User = u.Username
		}
	}
	if name, err := os.ReadFile(dir + "/comm"); err == nil {
		p.Name = string(bytes.TrimSpace(name))
	}
}

// String names a process for people.
func (p Process) String() string {
	text := fmt.Sprintf("process %d", p.PID)
	if p.Name != "" {
		text += " (" + p.Name
		if p.User != "" {
			text += " of " + p.User
		}
		text += ")"
	}
	if p.Used > 0 {
		text += " with " + printable.Bytes(p.Used)
	}
	return text
}

// Elsewhere says whether this process is in a PID namespace of its own, as in a container: the numbers by which the
// driver tells of processes are then those of the machine, which mean nothing here, or others. The kernel numbers the
// namespace that it began with alike on all machines (PROC_PID_INIT_INO).
func Elsewhere() bool {
	link, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && link != "pid:[4026531836]"
}
