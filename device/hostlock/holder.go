//go:build unix

package hostlock

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/process"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Holder is the process that has leased a device.
type Holder struct {
	PID     int        `json:"pid"`             // 0: not visible from here
	User    string     `json:"user"`            // empty: not visible from here
	Program string     `json:"program"`         // empty: not visible from here
	Since   *time.Time `json:"since,omitempty"` // nil: the holder could not write the note
	Node    string     `json:"node,omitempty"`  // empty: not known
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

// HolderOf returns the process, of any user, that has leased a device; nil: nobody. path and gpus are those of Open.
func HolderOf(d gpu.Device, path, gpus string) (*Holder, error) {
	f, err := os.OpenFile(gpuLock(path, gpus, d), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// A process that tries to lease the device at this moment will retry.
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
	if text, err := fs.ReadAll(f, maxNote); err == nil && json.Unmarshal(text, &n) == nil &&
		n.PID == h.PID {
		h.Since, h.Node = &n.Since, n.Node
	}
	return h, nil
}

// note is the content of a device's lock file: the holder, if it may write there; otherwise an earlier holder.
type note struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	Node  string    `json:"node"`
}

const maxNote = 64 << 10

// Note writes the holder and its node into a lock file, which may belong to another user. A file with a second name
// may be any file that somebody linked there to have it overwritten: it is locked, but not written.
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

// lockedBy returns the process that holds a file's lock; 0: not visible, or not known on this system.
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
		pid = holder // on some file systems, stat reports another device number than /proc/locks
	}
	return pid
}
