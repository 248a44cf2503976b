package workdir_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// A member's files are on the disk before the next member is measured, also those that nobody may read.
func TestFilesOfAMemberAreWrittenWhenItEnds(t *testing.T) {
	for _, mode := range []os.FileMode{0o755, 0} {
		t.Run(mode.String(), func(t *testing.T) { leaves(t, mode) })
	}
}

func leaves(t *testing.T, mode os.FileMode) {
	dir := t.TempDir()
	env := &engine.Env{Out: filepath.Join(dir, "out"), Work: filepath.Join(dir, "work"),
		Scratch: filepath.Join(dir, "scratch")}
	_, end, err := workdir.Apart(env, "member")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(env.Out, "member"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(env.Out, "member", "large"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, 64<<20)); err != nil {
		t.Fatal(err)
	}
	if dirty(t, f) == 0 {
		t.Skip("the kernel has written everything already")
	}
	err = errors.Join(os.Chmod(filepath.Join(env.Out, "member"), mode), os.Chmod(filepath.Dir(dir), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	asNobody(t, end)
	if n := dirty(t, f); n > 0 {
		t.Errorf("%d pages are still to be written", n)
	}
}

// asNobody calls f without root's right to read everything.
func asNobody(t *testing.T, f func()) {
	if user := os.Geteuid(); user == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.Setfsuid(65534); err != nil {
			t.Skip(err)
		}
		defer func() {
			if err := unix.Setfsuid(user); err != nil {
				panic(err)
			}
		}()
	}
	f()
}

// dirty returns the number of pages of a file that are not on the disk yet.
func dirty(t *testing.T, f *os.File) uint64 {
	const cachestat = 451 // on all systems, since Linux 6.5
	var all [2]uint64     // the range: from the beginning to the end
	var counted struct{ cached, dirty, writing, evicted, recently uint64 }
	if _, _, errno := unix.Syscall6(cachestat, f.Fd(), uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&counted)),
		0, 0, 0); errno != 0 {
		t.Skip(errno)
	}
	return counted.dirty + counted.writing
}
