package containertest

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/benchgraph/benchgraph/internal/needtest"
)

// Disk returns an empty directory on its own file system of that many bytes, for the Root of a Daemon. The test is
// skipped if it cannot mount one.
func Disk(t testing.TB, bytes int64) string {
	t.Helper()
	if os.Geteuid() != 0 {
		needtest.Missing(t, "only root mounts file systems")
	}
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		needtest.Missing(t, "no file system of its own: %v", err)
	}
	t.Cleanup(func() { unmount(dir) })
	return dir
}
