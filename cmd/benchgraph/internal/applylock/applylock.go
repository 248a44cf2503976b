// Package applylock lets one apply at a time change a project's state.
//
// The lock is a file that its owner holds with flock, so a lock whose owner was killed is free at once. The file also
// says who the owner is, for the message to whoever comes second, and carries a heartbeat: where several machines share
// the directory, or its file system has no flock, a lock that has not been renewed for a minute, nor while it was
// watched, counts as abandoned.
//
// Two processes are of one machine when they saw the same boot, whatever they call their host: containers have names of
// their own. Where a record, or the system, does not tell of the boot, the name of the host decides.
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

	"github.com/benchgraph/benchgraph/internal/fs"
)

const (
	beat      = 5 * time.Second  // between two heartbeats
	abandoned = 60 * time.Second // age of a heartbeat at which its owner counts as dead
	watch     = 3 * beat         // how long another host's lock that looks abandoned is watched
	settle    = time.Second      // without flock: how long a claim must stand before it counts
	size      = 4096             // bytes of the record: always written whole, in one write
)

// Owner says who holds a lock.
type Owner struct {
	PID     int       `json:"pid"`
	Born    uint64    `json:"born,omitempty"` // when the process started, in the kernel's own unit; 0: unknown
	Host    string    `json:"host"`
	Boot    string    `json:"boot,omitempty"` // names the time since the machine was last started; empty: unknown
	User    string    `json:"user"`
	Command string    `json:"command"`
	Try     bool      `json:"try,omitempty"` // it is a try: another one waits for its end
	Since   time.Time `json:"since"`
	Beat    time.Time `json:"beat"` // last heartbeat
	Flock   bool      `json:"flock"`
}

// HeldError says that another process holds the lock.
type HeldError struct {
	Path  string
	Owner Owner // zero when the owner has not written who it is yet
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

// Remedy says what to do about it. Only of a process of this host does it say that it can be ended.
func (e *HeldError) Remedy() string {
	host, _ := os.Hostname()
	if me := (Owner{Host: host, Boot: boot()}); e.Owner.PID == 0 || e.Owner.Host == host && e.Owner.sameMachine(me) {
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

// Await is Acquire that waits as long as tries have the lock, if o is one, too: agents run several side by side. wait
// is called once, before the first wait. The error is the cause of ctx when that ends first.
func Await(ctx context.Context, path string, o Owner, wait func(*HeldError)) (*Lock, error) {
	for told := false; ; told = true {
		l, err := Acquire(path, o)
		held, isHeld := errors.AsType[*HeldError](err)
		if !isHeld || !o.Try || !held.Owner.Try && held.Owner.PID != 0 { // one without a number is about to write it
			return l, err
		}
		if !told {
			wait(held)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(beat / 50):
		}
	}
}

// Acquire takes the lock in the file at path for o, whose process, user, host and times are filled in. The error is a
// *HeldError when somebody else has it.
func Acquire(path string, o Owner) (*Lock, error) {
	o.PID, o.Since = os.Getpid(), time.Now().Round(time.Second)
	if u, err := user.Current(); err == nil {
		o.User = cmp.Or(o.User, u.Username)
	}
	o.User = cmp.Or(o.User, "unknown")
	o.Born, _ = born(o.PID)
	o.Host, _ = os.Hostname()
	o.Boot = boot()
	o.Command = cut(o.Command, size/4)
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

// acquire tries once; again says that the file was replaced meanwhile.
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
	// A child that the owner was just forking when it was killed holds the lock until its own exec.
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
		// Two may have found the lock free at the same time; the record that was written last decides.
		time.Sleep(settle)
		if now := read(f); !now.same(l.owner) {
			return nil, false, &HeldError{Path: path, Owner: now}
		}
	}
	return l, false, nil
}

// open opens a regular file. It does not wait for what was put in its place.
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

// sameMachine says whether both owners are, or were, processes of one machine that has not been started since. On
// another machine of the same name, flock may know nothing of this one.
func (o Owner) sameMachine(p Owner) bool {
	if o.Boot != "" && p.Boot != "" {
		return o.Boot == p.Boot
	}
	return o.Host == p.Host
}

// visible says whether the other one's number means its process here, too: not so in another container.
func visible(other, me Owner) bool { return other.Host == me.Host && other.sameMachine(me) }

// dead says whether the owner was a process of this host that runs no more.
func dead(other, me Owner) bool { return other.PID != 0 && visible(other, me) && !alive(other) }

// free says whether the lock that the record in the file speaks of is free for me.
func free(f *os.File, other, me Owner) bool {
	switch {
	case other.sameMachine(me) && other.Flock && me.Flock:
		return true
	case visible(other, me):
		return !alive(other)
	}
	return !fresh(other) && !renewed(f, other)
}

// fresh says whether the last heartbeat is near. Whether one that is not is old, or the clocks of two hosts differ, the
// record does not tell.
func fresh(o Owner) bool { return time.Since(o.Beat).Abs() <= abandoned }

// renewed watches a lock for some heartbeats.
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
	me := Owner{Boot: boot()}
	me.Host, _ = os.Hostname()
	if o.PID == 0 || dead(o, me) {
		return Owner{}, false
	}
	return o, visible(o, me) || fresh(o)
}

// Release gives the lock back.
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
		_ = l.write() // a heartbeat that cannot be written is like none: the next one may succeed
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

// read is the zero Owner when the file holds no record.
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

// alive says whether the owner, a process of this host, still runs. A process that was given its number since is
// another.
func alive(o Owner) bool {
	if err := unix.Kill(o.PID, 0); err != nil && !errors.Is(err, unix.EPERM) {
		return false
	}
	now, ok := born(o.PID)
	return !ok || o.Born == 0 || now == o.Born
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
