//go:build unix

// Package hostlock coordinates the pools of several processes on a host: quiet nodes, and devices.
package hostlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/process"
	"github.com/benchgraph/benchgraph/device/wish"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Lock coordinates the pools of several processes: a pool holds it shared while it has a lease, and exclusively while
// it has a quiet one. The kernel releases it when its holder dies. It is not safe for concurrent use.
type Lock struct {
	namedLock
	Wishes *wish.Board // wishes for more devices than are free
	gpus   string      // directory of the devices' locks; empty: beside path
	leases int

	// turn makes the pools queue. A pool that waits for quiet holds the turn exclusively: no other pool starts a node
	// meanwhile, while running nodes finish. A pool that waits for the end of a quiet node holds the turn shared: no
	// other quiet node comes first.
	turn   namedLock
	queued fs.LockKind // how turn is held; notQueued: not held
}

const notQueued fs.LockKind = 0

// namedLock is a lock file with a path.
type namedLock struct {
	path   string
	shared string // directory that all users of the host share
	file   *File
}

func openNamed(path, shared string) (namedLock, error) {
	l := namedLock{path: path, shared: shared}
	return l, l.open()
}

// open opens the file at the path. It makes the file and its directory if necessary.
func (l *namedLock) open() (err error) {
	if dir := filepath.Dir(l.path); dir == l.shared {
		err = openToAll(dir)
	} else {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		l.file, err = openLock(l.path)
	}
	return err
}

// guardPatience is how long the guard of locked clocks may take to reset the clocks of its dead process. It holds the
// devices until then.
const guardPatience = 10 * time.Second

// Lease leases a device against all pools with the same path and gpus (see Open). It waits for a while until the
// device is free.
func Lease(uuid, path, gpus string) (release func(), err error) {
	h, err := openAt(path, gpus)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	for end := time.Now().Add(guardPatience); ; time.Sleep(100 * time.Millisecond) {
		lock, err := h.Device(gpu.Device{UUID: uuid})
		if err == nil {
			return func() { lock.Close() }, nil
		}
		if !fs.Held(err) || !time.Now().Before(end) {
			return nil, err
		}
	}
}

// Open opens the lock of a host, whose file is at path. If gpus is not empty, it is a directory that all users of the
// host share: it has the locks of devices, and the lock by which the users respect each other's quiet. If the directory
// cannot be used, for example because another user has made it, Open calls warn, and quiet holds by the file at path.
func Open(path, gpus string, warn func(format string, args ...any)) (*Lock, error) {
	if gpus == "" {
		return openAt(path, gpus)
	}
	h, err := openAt(filepath.Join(gpus, "host.lock"), gpus)
	if err == nil {
		return h, nil
	}
	if warn != nil {
		warn("Warning: quiet holds among what this user runs alone: %v. Have the owner of %s or root remove it.", err,
			gpus)
	}
	return openAt(path, gpus)
}

func openAt(path, gpus string) (*Lock, error) {
	h := &Lock{gpus: gpus, Wishes: wish.NewBoard(gpuLock(path, gpus, gpu.Device{UUID: "wish-"}))}
	var err error
	if h.namedLock, err = openNamed(path, gpus); err != nil {
		return nil, err
	}
	if h.turn, err = openNamed(path+".turn", gpus); err != nil {
		h.file.Close()
		return nil, err
	}
	return h, nil
}

// Check returns why devices cannot be locked in a shared directory. dir may be empty: no shared directory.
func Check(dir string) error {
	if dir == "" {
		return nil
	}
	return openToAll(dir)
}

// openToAll makes a directory in which all users may create files, but nobody may remove those of others.
func openToAll(dir string) error {
	err := os.Mkdir(dir, 0o777)
	if err == nil {
		return os.Chmod(dir, 0o777|os.ModeSticky) // independent of the umask
	}
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &os.PathError{Op: "open", Path: dir, Err: unix.ENOTDIR}
	}
	if info.Mode()&0o002 != 0 && info.Mode()&os.ModeSticky == 0 {
		return fmt.Errorf("in %s everybody can remove the locks of others (%s): have its owner or root run "+
			"chmod +t %[1]s", dir, info.Mode())
	}
	if info.Mode()&0o002 == 0 {
		return finish(dir)
	}
	return nil
}

// finish completes the permissions of a directory that this user made before it was killed. It does not change
// another user's directory, which may still be usable.
func finish(dir string) error {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil || int(stat.Uid) != os.Geteuid() {
		return err
	}
	return f.Chmod(0o777 | os.ModeSticky)
}

// Enter counts one more lease, or returns what it waits for. The turn is kept until Unqueue, as the request may need
// more.
func (h *Lock) Enter(quiet bool) string {
	how := fs.Shared
	if quiet {
		how = fs.Exclusive
	}
	err := h.queue(how)
	if fs.Held(err) {
		return "its turn: " + h.turn.holder() + " on this host"
	}
	if err == nil && h.leases == 0 {
		err = h.lock(how)
	}
	switch {
	case err == nil:
	case fs.Held(err) && quiet:
		return "quiet: the end of what " + h.holder() + " runs on this host"
	case fs.Held(err):
		return "the end of a quiet one of " + h.holder() + " on this host"
	default:
		return fmt.Sprintf("the host lock %s: %v", h.path, err)
	}
	h.leases++
	return ""
}

// queue takes the turn unless it is already held in the same way.
func (h *Lock) queue(how fs.LockKind) error {
	if h.queued == how {
		return nil
	}
	h.Unqueue()
	err := h.turn.lock(how)
	if err == nil {
		h.queued = how
	}
	return err
}

// Unqueue gives the turn back.
func (h *Lock) Unqueue() {
	if h.queued != notQueued {
		_ = fs.Unlock(h.turn.file.File) // cannot fail on an open file
		h.queued = notQueued
	}
}

// lock locks the file that is at the path now: somebody may have removed the opened one.
func (l *namedLock) lock(how fs.LockKind) error {
	if !fs.IsAt(l.file.File, l.path) {
		old := l.file
		if err := l.open(); err != nil {
			l.file = old
			return err
		}
		old.Close()
	}
	return fs.TryLock(l.file.File, how)
}

// holder describes the process that has locked the file, as far as it is visible.
func (l *namedLock) holder() string {
	p := process.Process{PID: lockedBy(l.file.File)}
	if p.PID == 0 {
		return "another process"
	}
	p.Identify()
	return Holder{PID: p.PID, User: p.User, Program: p.Name}.String()
}

// Leave counts one lease less.
func (h *Lock) Leave() {
	if h.leases--; h.leases == 0 {
		_ = fs.Unlock(h.file.File) // cannot fail on an open file
	}
}

// gpuLock returns the path of a device's lock.
func gpuLock(hostLock, gpuLocks string, d gpu.Device) string {
	name := filepath.Base(d.UUID)
	if gpuLocks == "" {
		return hostLock + "." + name
	}
	return filepath.Join(gpuLocks, name)
}

// Device locks one device against other processes. If another process has locked it, the error satisfies fs.Held.
func (h *Lock) Device(d gpu.Device) (*File, error) {
	if h.gpus != "" {
		if err := openToAll(h.gpus); err != nil {
			return nil, err
		}
	}
	path := gpuLock(h.path, h.gpus, d)
	for {
		f, err := openLock(path)
		if err != nil {
			return nil, err
		}
		if err := fs.TryLock(f.File, fs.Exclusive); err != nil {
			f.Close()
			return nil, err
		}
		if fs.IsAt(f.File, path) {
			return f, nil
		}
		f.Close() // the file was removed meanwhile: another process may lock a new file of that name
	}
}

// LeasedElsewhere reports whether another process holds the lock of a device.
func (h *Lock) LeasedElsewhere(d gpu.Device) bool {
	lock, err := h.Device(d)
	if err == nil {
		lock.Close()
	}
	return fs.Held(err)
}

// Close releases all locks.
func (h *Lock) Close() error {
	h.Wishes.Close()
	return errors.Join(h.file.Close(), h.turn.file.Close())
}

// File is a file that exists only to be locked.
type File struct{ *os.File }

// openLock opens a lock file, which may belong to another user and be read-only. As the directory may be open to all,
// it follows no links and does not block on pipes.
func openLock(path string) (*File, error) {
	const careful = unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(path, os.O_RDWR|careful, 0)
	if errors.Is(err, os.ErrNotExist) {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|careful, 0o644)
		if err == nil {
			_ = f.Chmod(0o644) // independent of the umask
		} else if errors.Is(err, os.ErrExist) { // somebody else has just made it
			f, err = os.OpenFile(path, os.O_RDWR|careful, 0)
		}
	}
	if err != nil {
		f, err = os.OpenFile(path, os.O_RDONLY|careful, 0)
	}
	if err != nil {
		return nil, err
	}
	return &File{f}, nil
}
