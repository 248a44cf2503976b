package modaltest

import (
	"os"
	"syscall"
)

// processOf says how a command is started that ends with this process, with mounts in namespaces of its own.
func processOf(mounts bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if mounts {
		attr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return attr
}
