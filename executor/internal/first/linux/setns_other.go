//go:build linux && !amd64

package linux

import "syscall"

// SYS_SETNS is the number of setns(2).
const SYS_SETNS = syscall.SYS_SETNS
