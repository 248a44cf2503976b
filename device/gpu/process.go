package gpu

import (
	"bytes"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// elsewhere says whether this process is in a PID namespace of its own, as in a container: the numbers by which the
// driver tells of processes are then those of the machine, which mean nothing here, or others. The kernel numbers the
// namespace that it began with alike on all machines (PROC_PID_INIT_INO).
func elsewhere() bool {
	link, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && link != "pid:[4026531836]"
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

// mpsName is the name of both programs of CUDA's Multi-Process Service (MPS), nvidia-cuda-mps-control and
// nvidia-cuda-mps-server: the kernel keeps 15 bytes.
const mpsName = "nvidia-cuda-mps"

// mpsWarning says that a control daemon of MPS has its pipes in a directory; empty: none is seen from here.
func mpsWarning(pipes string) string {
	text, _ := os.ReadFile(filepath.Join(pipes, "nvidia-cuda-mps-control.pid"))
	p := Process{}
	_, _ = fmt.Sscan(string(text), &p.PID)
	if p.Identify(); p.Name != mpsName { // a daemon that was killed leaves its files
		return ""
	}
	return fmt.Sprintf("an MPS daemon waits for programs, %s: those without a sandbox become its clients, and share "+
		"the device with others (echo quit | nvidia-cuda-mps-control)", p)
}
