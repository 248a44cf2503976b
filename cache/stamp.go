package cache

import (
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Stamp is the state of a file or directory, as the operating system reports it. Times are Unix nanoseconds. If two
// looks at a path give equal, settled stamps, they have seen the same bytes, or the same names.
type Stamp struct {
	Size    int64
	Changed int64 // modification time
	Touched int64 // change time, which no program can set
	Device  uint64
	Inode   uint64
}

// StampGrain is the least age of the last change for which a stamp identifies the content. A file that is changed again
// within one tick of its file system's clock keeps its time stamps, and often its size. Ticks are 10 ms on the file
// systems of Linux, 1 s on ext3 and HFS+, 2 s on FAT.
const StampGrain = 2 * time.Second

// Settled reports whether any further change will change a stamp that was taken at the time at or later. A stamp from
// the future is never settled: the clock was set back since, so the same time can come again with other bytes.
func (s Stamp) Settled(at time.Time) bool {
	limit := at.Add(-StampGrain).UnixNano()
	return s.Changed < limit && s.Touched < limit
}

// StampFile returns the stamp and the mode (0o755 or 0o644) of a regular file. The name is relative to dir, an open
// directory; to the current one if dir is nil. A link is followed. Anything but a regular file is an error.
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

// StampOf returns the stamp in the result of a stat.
func StampOf(st *unix.Stat_t) Stamp {
	return Stamp{Size: st.Size, Changed: st.Mtim.Nano(), Touched: st.Ctim.Nano(), Device: uint64(st.Dev), Inode: st.Ino}
}

func modeOf(st *unix.Stat_t) uint32 {
	if Executable(uint32(st.Mode)) {
		return ModeExecutable
	}
	return ModePlain
}
