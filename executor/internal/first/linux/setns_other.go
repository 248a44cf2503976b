//go:build linux && !amd64

package linux

import "syscall"

// The numbers of setns(2) and seccomp(2).
const (
	SYS_SETNS   = syscall.SYS_SETNS
	SYS_SECCOMP = syscall.SYS_SECCOMP
)
