package modaltest

import (
	"os"
	"syscall"
)

// processOf returns the attributes of a command that ends with this process. With mounts, it has namespaces of its
// own.
func processOf(mounts bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if mounts {
		attr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return attr
}
