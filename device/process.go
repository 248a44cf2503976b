package device

import (
	"bytes"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// identify finds out whose process it is and what it is called, as far as it can be seen from here.
func (p *Process) identify() {
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
