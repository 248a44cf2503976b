// Package applylock lets one apply at a time change a project's state.
//
// The lock is a file that its owner holds with flock, so a lock whose owner was killed is free at once. The file also
// names the owner, for the message to a second process, and has a heartbeat. Where several machines share the
// directory, or its file system has no flock, a lock counts as abandoned if its heartbeat is older than a minute, and
// is not renewed while another process watches it.
//
// Two processes are of one machine if they saw the same boot, whatever their hosts are called: containers have names of
// their own. If a record or the system does not tell the boot, the name of the host decides.
package applylock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor/family"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/printable"
)

const (
	beat      = 5 * time.Second  // between two heartbeats
	abandoned = 60 * time.Second // age of a heartbeat at which its owner counts as dead
	watch     = 3 * beat         // how long the lock of another host that looks abandoned is watched
	settle    = time.Second      // without flock: how long a claim must stand before it counts
	size      = 4096             // bytes of the record: always written whole, in one write
)

// Owner is the process that holds a lock.
type Owner struct {
	PID     int       `json:"pid"`
	Born    uint64    `json:"born,omitempty"` // when the process started, in the kernel's own unit; 0: unknown
	Host    string    `json:"host"`
	Boot    string    `json:"boot,omitempty"` // identifies the boot of the machine; empty: unknown
	User    string    `json:"user"`
	Command string    `json:"command"`
	Try     bool      `json:"try,omitempty"` // the command is a try: another try waits for its end
	Since   time.Time `json:"since"`
	Beat    time.Time `json:"beat"` // last heartbeat
	Flock   bool      `json:"flock"`
}

// HeldError reports that another process holds the lock.
type HeldError struct {
	Path  string
	Owner Owner // zero if the owner has not written its record yet
}

func (e *HeldError) Error() string {
	if e.Owner.PID == 0 {
		return fmt.Sprintf("%s is held by another process", e.Path)
	}
	o := e.Owner
	return fmt.Sprintf("%s is held by process %d of %s on %s since %s, last heard of %s ago: %s",
		e.Path, o.PID, o.User, o.Host, o.Since.Format(time.DateTime),
		max(0, time.Since(o.Beat)).Round(time.Second), o.Command)
}

// Remedy returns what the user can do. Only a process of this host can be ended from here.
func (e *HeldError) Remedy() string {
	host, _ := os.Hostname()
	me := Owner{Host: host, Boot: family.Boot()}
	if e.Owner.PID == 0 || visible(e.Owner, me) {
		return "Wait for it to end, or end it: what it has finished is kept."
	}
	return fmt.Sprintf("Wait for it to end, or end it there: what it has finished is kept. If it was killed, its lock "+
		"is free %s after it was last heard of.", abandoned+watch)
}

// Lock is held until it is released or its process ends.
type Lock struct {
	file  *os.File
	path  string
	owner Owner
	lost  chan struct{}
	stop  chan struct{}
	done  sync.WaitGroup
}

// Await is Acquire, but if o is a try, it waits as long as other tries have the lock: agents run several side by side.
// It calls wait once, before the first wait. If ctx ends first, the error is its cause.
func Await(ctx context.Context, path string, o Owner, wait func(*HeldError)) (*Lock, error) {
	for waiting := false; ; waiting = true {
		l, err := Acquire(path, o)
		held, isHeld := errors.AsType[*HeldError](err)
		if !isHeld || !o.Try || !held.Owner.Try && held.Owner.PID != 0 { // 0: about to write
			return l, err
		}
		if !waiting {
			wait(held)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(beat / 50):
		}
	}
}

// Acquire takes the lock in the file at path for o, and fills in o's process, user, host and times. The error is a
// *HeldError if another process has the lock.
func Acquire(path string, o Owner) (*Lock, error) {
	o.PID, o.Since = os.Getpid(), time.Now().Round(time.Second)
	if u, err := user.Current(); err == nil {
		o.User = cmp.Or(o.User, u.Username)
	}
	o.User = cmp.Or(o.User, "unknown")
	o.Born = family.This().Born
	o.Host, _ = os.Hostname()
	o.Boot = family.Boot()
	o.Command = printable.Clip(o.Command, size/4)
	for {
		l, again, err := acquire(path, o)
		if err != nil {
			return nil, err
		}
		if again {
			continue
		}
		l.done.Go(l.keepBeating)
		return l, nil
	}
}

// acquire tries once. again reports that the file was replaced meanwhile.
func acquire(path string, o Owner) (l *Lock, again bool, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, false, fmt.Errorf("lock %s: %w", path, err)
	}
	f, err := open(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, false, fmt.Errorf("lock %s: %w", path, err)
	}
	l = &Lock{file: f, path: path, owner: o, lost: make(chan struct{}), stop: make(chan struct{})}
	defer func() {
		if err != nil || again {
			f.Close()
		}
	}()
	err = fs.TryLock(f, fs.Exclusive)
	// If an owner is killed while it forks, the child holds the lock until its own exec.
	for end := time.Now().Add(settle); fs.Held(err) && time.Now().Before(end) && dead(read(f), o); {
		time.Sleep(10 * time.Millisecond)
		err = fs.TryLock(f, fs.Exclusive)
	}
	switch {
	case fs.Held(err):
		return nil, false, &HeldError{Path: path, Owner: read(f)}
	case err == nil:
		l.owner.Flock = true
	case !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, unix.ENOLCK):
		return nil, false, fmt.Errorf("lock %s: %w", path, err)
	}
	if !fs.IsAt(f, path) {
		return nil, true, nil
	}
	if other := read(f); other.PID != 0 && !free(f, other, l.owner) {
		return nil, false, &HeldError{Path: path, Owner: other}
	}
	if err := l.write(); err != nil {
		return nil, false, err
	}
	if !l.owner.Flock {
		// Two processes may have found the lock free at the same time; the record that was written last decides.
		time.Sleep(settle)
		if now := read(f); !now.same(l.owner) {
			return nil, false, &HeldError{Path: path, Owner: now}
		}
	}
	return l, false, nil
}

// open opens a regular file. It does not block on a pipe in its place.
func open(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0o644)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) {
		return nil, errIrregular
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errIrregular, f.Close())
	}
	return f, nil
}

var errIrregular = errors.New("it is no regular file: move it away")

// sameMachine reports whether both owners are processes of one machine since its last boot. On another machine with the
// same name, flock may not see this one's locks.
func (o Owner) sameMachine(p Owner) bool {
	if o.Boot != "" && p.Boot != "" {
		return o.Boot == p.Boot
	}
	return o.Host == p.Host
}

// visible reports whether the other owner's process number means the same process here. In another container it does
// not.
func visible(other, me Owner) bool { return other.Host == me.Host && other.sameMachine(me) }

// dead reports whether the owner was a process of this host that no longer runs.
func dead(other, me Owner) bool { return other.PID != 0 && visible(other, me) && !alive(other) }

// free reports whether me may take the lock of another owner's record.
func free(f *os.File, other, me Owner) bool {
	switch {
	case other.sameMachine(me) && other.Flock && me.Flock:
		return true
	case visible(other, me):
		return !alive(other)
	}
	return !fresh(other) && !renewed(f, other)
}

// fresh reports whether the last heartbeat is near. If it is not, the owner may be gone, or the clocks of the two hosts
// may differ; the record does not tell which.
func fresh(o Owner) bool { return time.Since(o.Beat).Abs() <= abandoned }

// renewed watches a lock for some heartbeats, and reports whether its owner renews it.
func renewed(f *os.File, other Owner) bool {
	for end := time.Now().Add(watch); time.Now().Before(end); time.Sleep(beat / 5) {
		if now := read(f); !now.Beat.Equal(other.Beat) || !now.same(other) {
			return now.PID != 0
		}
	}
	return false
}

// Holder returns the owner in the lock's record, if the owner lives and has renewed the lock. It takes no lock.
func Holder(path string) (Owner, bool) {
	f, err := open(path, os.O_RDONLY)
	if err != nil {
		return Owner{}, false
	}
	defer f.Close()
	o := read(f)
	me := Owner{Boot: family.Boot()}
	me.Host, _ = os.Hostname()
	if o.PID == 0 || dead(o, me) {
		return Owner{}, false
	}
	return o, visible(o, me) || fresh(o)
}

// Release frees the lock.
func (l *Lock) Release() error {
	close(l.stop)
	l.done.Wait()
	select {
	case <-l.lost:
		return l.file.Close()
	default:
	}
	// The file stays: removing it would let one process lock the old file and another one a new file.
	return errors.Join(l.file.Truncate(0), l.file.Close())
}

func (l *Lock) keepBeating() {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
		}
		if !fs.IsAt(l.file, l.path) || !read(l.file).same(l.owner) {
			close(l.lost)
			return
		}
		_ = l.write() // if one heartbeat cannot be written, the next one may succeed
	}
}

func (l *Lock) write() error {
	l.owner.Beat = time.Now()
	text, err := json.Marshal(l.owner)
	if err != nil {
		return err
	}
	if len(text) >= size {
		return fmt.Errorf("lock %s: record of %d bytes is too long", l.path, len(text))
	}
	padded := string(text) + strings.Repeat(" ", size-1-len(text)) + "\n"
	if _, err := l.file.WriteAt([]byte(padded), 0); err != nil {
		return fmt.Errorf("lock %s: %w", l.path, err)
	}
	return nil
}

// read returns the owner in the record; the zero Owner if the file has no record.
func read(f *os.File) Owner {
	var o Owner
	text, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	if err != nil || json.Unmarshal(text, &o) != nil || o.PID <= 0 {
		return Owner{}
	}
	return o
}

func (o Owner) same(p Owner) bool {
	return o.PID == p.PID && o.Born == p.Born && o.Host == p.Host && o.Since.Equal(p.Since)
}

// alive reports whether the owner, a process of this host, still runs. A process that got its number later does not
// count.
func alive(o Owner) bool {
	if err := unix.Kill(o.PID, 0); err != nil && !errors.Is(err, unix.EPERM) {
		return false
	}
	gone, known := family.Starter{PID: o.PID, Born: o.Born}.Gone()
	return o.Born == 0 || !known || !gone
}
