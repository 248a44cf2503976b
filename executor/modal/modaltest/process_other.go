//go:build !linux

package modaltest

import "syscall"

// processOf says how a command is started. A sandbox with volumes fails here, since only Linux has namespaces.
func processOf(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
