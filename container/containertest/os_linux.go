package containertest

import "syscall"

// attributes make a program end with the thread that started it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }

// unmount removes all mounts at path.
func unmount(path string) {
	for syscall.Unmount(path, syscall.MNT_DETACH) == nil {
	}
}
