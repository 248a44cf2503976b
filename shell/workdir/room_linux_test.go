package workdir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/internal/needtest"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// A member pays for a full disk only if it took more of it than others outside of the block.
func TestRoomIsChargedToWhoTookIt(t *testing.T) {
	dir := needtest.Apart(t)
	if dir == "" {
		return
	}
	for who, want := range map[string]string{"out/good": "good", "outside": ""} {
		small := filepath.Join(dir, filepath.Base(who))
		if err := errors.Join(os.Mkdir(small, 0o755), unix.Mount("none", small, "tmpfs", 0, "size=4m")); err != nil {
			t.Fatal(err)
		}
		fill := filepath.Join(small, who, "fill")
		if err := errors.Join(os.MkdirAll(filepath.Join(small, "out", "good"), 0o755), os.MkdirAll(filepath.Dir(fill),
			0o755)); err != nil {
			t.Fatal(err)
		}
		room := workdir.RoomIn(filepath.Join(small, "out"))
		if err := os.WriteFile(filepath.Join(small, "out", "good", "little"), make([]byte, 8<<10), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(fill, make([]byte, 8<<20), 0o644); !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
		if got, f := room.Taken([]string{"base", "good"}, "base"); got != want {
			t.Errorf("%s filled the disk, and %q is charged: %v", who, got, f)
		}
	}
}
