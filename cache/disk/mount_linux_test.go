package disk_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

// A result with a mount point in it is not taken over.
func TestPutRefusesMounts(t *testing.T) {
	dir := needtest.Apart(t)
	if dir == "" {
		return
	}
	store, err := disk.Open(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	scratch, err := store.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(scratch, cache.FilesDir)
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", out, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "elsewhere"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := cache.Describe("test")
	_, err = store.Put(t.Context(), cache.Draft{Meta: cache.Meta{Key: d.Key(), Text: d.Text()}, Dir: scratch})
	if err == nil || !strings.Contains(err.Error(), "is a mount point") {
		t.Errorf("%v", err)
	}
}
