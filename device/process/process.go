// Package process describes processes of this machine in messages.
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

// Process is a running program, for example on a GPU.
type Process struct {
	PID  int    `json:"pid"`
	User string `json:"user,omitempty"` // name, or else number; empty: not visible
	Name string `json:"name,omitempty"` // name that the program gives itself
	Used int64  `json:"used_bytes"`     // bytes of a GPU; 0: not known
}

// Identify sets the user and the name of the process, as far as they are visible.
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

// String describes a process in words.
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

// Elsewhere reports whether this process is in a PID namespace of its own, as in a container: the driver's process
// numbers are then those of the machine, and name no process or other processes here. The initial PID namespace has
// the same number on all machines (PROC_PID_INIT_INO).
func Elsewhere() bool {
	link, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && link != "pid:[4026531836]"
}
