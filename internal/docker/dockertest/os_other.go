//go:build !linux

package dockertest

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }

func unmount(string) {}
