package cache

import (
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Stamp is what the operating system tells of the state of a file or a directory. Times are Unix nanoseconds. Two looks
// at a path that give equal, settled stamps have seen the same bytes, or the same names.
type Stamp struct {
	Size    int64
	Changed int64 // modification time
	Touched int64 // change time, which no program can set
	Device  uint64
	Inode   uint64
}

// StampGrain is how long ago the last change must have been for a stamp to stand for what it was taken of. A file that
// is changed again within one tick of its file system's clock keeps its time stamps, and often its size. Ticks are 10
// ms on the file systems of Linux, 1 s on ext3 and HFS+, 2 s on FAT.
const StampGrain = 2 * time.Second

// Settled says whether a stamp that was taken at a time, or after it, will be another one after any further change. One
// from the future never is: it is from before the clock was set back, and the same time can come again, with other
// bytes.
func (s Stamp) Settled(at time.Time) bool {
	limit := at.Add(-StampGrain).UnixNano()
	return s.Changed < limit && s.Touched < limit
}

// StampFile stamps a regular file, and says its mode (0o755 or 0o644). The name is relative to an open directory; when
// that is nil, to the current one. A link is followed; what is no regular file is an error.
func StampFile(dir *os.File, name string) (Stamp, uint32, error) {
	from := unix.AT_FDCWD
	if dir != nil {
		from = int(dir.Fd())
	}
	var st unix.Stat_t
	if err := unix.Fstatat(from, name, &st, 0); err != nil {
		return Stamp{}, 0, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return Stamp{}, 0, fmt.Errorf("%s is not a regular file", name)
	}
	return StampOf(&st), modeOf(&st), nil
}

// StampOf is the stamp in what a system call told.
func StampOf(st *unix.Stat_t) Stamp {
	return Stamp{Size: st.Size, Changed: st.Mtim.Nano(), Touched: st.Ctim.Nano(), Device: uint64(st.Dev), Inode: st.Ino}
}

func modeOf(st *unix.Stat_t) uint32 {
	if Executable(uint32(st.Mode)) {
		return ModeExecutable
	}
	return ModePlain
}
