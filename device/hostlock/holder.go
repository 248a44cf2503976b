//go:build unix

package hostlock

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/process"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Holder is who has leased a device.
type Holder struct {
	PID     int        `json:"pid"`             // 0: not to be seen from here
	User    string     `json:"user"`            // likewise empty
	Program string     `json:"program"`         // likewise
	Since   *time.Time `json:"since,omitempty"` // nil: it could not write that down
	Node    string     `json:"node,omitempty"`  // likewise
}

func (h Holder) String() string {
	if h.PID == 0 {
		return "a process that cannot be seen from here"
	}
	text := fmt.Sprintf("%s %d", cmp.Or(h.Program, "process"), h.PID)
	if h.User != "" {
		text += " of " + h.User
	}
	if h.Node != "" {
		text += ": " + h.Node
	}
	if h.Since != nil {
		text += ", since " + h.Since.Local().Format(time.DateTime)
	}
	return text
}

// HolderOf says who has leased a device, of whatever user, where pools have their locks there (see Open); nil: nobody.
func HolderOf(d gpu.Device, path, gpus string) (*Holder, error) {
	f, err := os.OpenFile(gpuLock(path, gpus, d), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Whoever tries to lease it in this moment tries again in the next one.
	if err := fs.TryLock(f, fs.Shared); !fs.Held(err) {
		return nil, err
	}
	h := &Holder{PID: lockedBy(f)}
	if h.PID == 0 {
		return h, nil
	}
	p := process.Process{PID: h.PID}
	p.Identify()
	h.User, h.Program = p.User, p.Name
	var n note
	if text, err := io.ReadAll(io.LimitReader(f, maxNote)); err == nil && json.Unmarshal(text, &n) == nil &&
		n.PID == h.PID {
		h.Since, h.Node = &n.Since, n.Node
	}
	return h, nil
}

// note is what stands in the lock file of a device: what its holder is at, if he may write there; else it is of an
// earlier one.
type note struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	Node  string    `json:"node"`
}

const maxNote = 64 << 10

// Note writes into a lock file who holds it, and for which node. It may belong to another user. One that has a second
// name may be anybody's file, linked to by whoever wants it gone; it is locked like others, and nothing written.
func (l *File) Note(node string) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(l.Fd()), &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Nlink != 1 {
		return
	}
	text, err := json.Marshal(note{PID: os.Getpid(), Since: time.Now(), Node: node})
	if err != nil || l.Truncate(0) != nil {
		return
	}
	_, _ = l.WriteAt(text, 0)
}

// lockedBy is the process that holds a file's lock; 0: it cannot be seen from here, or this system does not tell.
func lockedBy(f *os.File) (pid int) {
	var stat unix.Stat_t
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer locks.Close()
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return 0
	}
	device := fmt.Sprintf("%02x:%02x:%d", unix.Major(uint64(stat.Dev)), unix.Minor(uint64(stat.Dev)), stat.Ino)
	inode := device[strings.LastIndexByte(device, ':'):]
	for s := bufio.NewScanner(locks); s.Scan(); {
		var holder int
		field := strings.Fields(s.Text()) // 1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF
		if len(field) < 6 || field[1] != "FLOCK" || !strings.HasSuffix(field[5], inode) {
			continue
		}
		if _, err := fmt.Sscan(field[4], &holder); err != nil {
			continue
		}
		if field[5] == device {
			return holder
		}
		pid = holder // some file systems have a number of their own for what stat tells as the device
	}
	return pid
}
