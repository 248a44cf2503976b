//go:build !linux

package containertest

import (
	"syscall"
	"testing"
)

func attributes() *syscall.SysProcAttr { return nil }

// Disk skips the test: small file systems are mounted on Linux only.
func Disk(t testing.TB, _ int64) string {
	t.Helper()
	t.Skip("small file systems are mounted on Linux only")
	return ""
}

func unmount(string) {}
