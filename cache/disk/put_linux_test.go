package disk_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/cachetest"
)

// A file that cannot be removed stays behind; the computed result is stored nevertheless.
func TestPutLeavesUnremovableFilesBehind(t *testing.T) {
	d := openDisk(t, storeDir(t))
	dir := cachetest.Prepare(t, d, map[string]string{"f": "1"})
	f, err := os.Create(filepath.Join(dir, "stuck"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, unix.STATX_ATTR_IMMUTABLE); err != nil {
		t.Skip("no file can be made immutable here:", err)
	}
	entry, err := d.Put(context.Background(), cache.Draft{Dir: dir, Meta: cachetest.Meta("a")})
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get(context.Background(), entry.Key, true); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(entry.Dir)); err != nil || len(left) != 2 {
		t.Errorf("the entry consists of %v, %v", left, err)
	}
}
