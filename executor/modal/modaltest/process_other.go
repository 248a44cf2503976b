//go:build !linux

package modaltest

import "syscall"

// processOf returns the attributes of a command. Sandboxes with volumes fail here: only Linux has namespaces.
func processOf(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
