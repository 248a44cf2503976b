//go:build unix

package device

import (
	"errors"
	"fmt"
	"time"

	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/wish"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// hostLock keeps the pools of several processes apart: a pool holds it shared while it has a lease, and exclusively
// while it has a quiet one. The kernel frees it when its holder dies. A LocalPool's mutex guards it.
type hostLock struct {
	namedLock
	gpus   string // directory of the devices' locks; empty: they lie beside path
	leases int
	wishes *wish.Board

	// turn makes the pools queue. A pool that waits for quiet holds the turn exclusively: no other pool starts a node
	// meanwhile, and the running nodes come to their end. A pool that waits for the end of a quiet node holds the turn
	// shared: no other quiet node comes first.
	turn   namedLock
	queued fs.LockKind // how turn is held; notQueued: not at all
}

const notQueued fs.LockKind = 0

// namedLock is a lock file that is there under a name.
type namedLock struct {
	path string
	file *fileLock
}

func openNamed(path string) (namedLock, error) {
	f, err := openLock(path)
	return namedLock{path, f}, err
}

// guardPatience is how long the guard of locked clocks may take to reset what its process left. It keeps the devices
// until then.
const guardPatience = 10 * time.Second

// LeaseGPU leases a device beside all pools with these Options.HostLock and GPULocks. It waits for a while until the
// device is free.
func LeaseGPU(uuid, hostLock, gpuLocks string) (release func(), err error) {
	return leaseGPU(uuid, hostLock, gpuLocks, guardPatience)
}

func leaseGPU(uuid, hostLock, gpuLocks string, patience time.Duration) (release func(), err error) {
	h, err := openHostLock(hostLock, gpuLocks)
	if err != nil {
		return nil, err
	}
	defer h.close()
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		lock, err := h.gpu(gpu.Device{UUID: uuid})
		if err == nil {
			return func() { lock.close() }, nil
		}
		if !fs.Held(err) || !time.Now().Before(end) {
			return nil, err
		}
	}
}

func openHostLock(path, gpus string) (*hostLock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	h := &hostLock{gpus: gpus, wishes: wish.NewBoard(gpuLock(path, gpus, gpu.Device{UUID: "wish-"}))}
	var err error
	if h.namedLock, err = openNamed(path); err != nil {
		return nil, err
	}
	if h.turn, err = openNamed(path + ".turn"); err != nil {
		h.file.close()
		return nil, err
	}
	return h, nil
}

// CheckLocks says why the locks of devices in a directory of all users of the machine would be none; "" is no such
// directory.
func CheckLocks(dir string) error {
	if dir == "" {
		return nil
	}
	return openToAll(dir)
}

// openToAll makes a directory in which every user of the machine may put files, and nobody remove those of others.
func openToAll(dir string) error {
	err := os.Mkdir(dir, 0o777)
	if err == nil {
		return os.Chmod(dir, 0o777|os.ModeSticky) // whatever the umask
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
		return fmt.Errorf("in %s everybody can remove the locks of others (%s): have its owner or root run chmod +t %[1]s",
			dir, info.Mode())
	}
	return nil
}

// enter counts one more lease, or says what it waits for. The turn is kept until unqueue, as the request may want more.
func (h *hostLock) enter(quiet bool) string {
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

// queue takes the turn, or keeps the one that was taken before.
func (h *hostLock) queue(how fs.LockKind) error {
	if h.queued == how {
		return nil
	}
	h.unqueue()
	err := h.turn.lock(how)
	if err == nil {
		h.queued = how
	}
	return err
}

// unqueue gives the turn back.
func (h *hostLock) unqueue() {
	if h.queued != notQueued {
		_ = fs.Unlock(h.turn.file.f) // it cannot fail on an open file
		h.queued = notQueued
	}
}

// lock locks the file that is at the path now: something may have tidied up the one that was opened.
func (l *namedLock) lock(how fs.LockKind) error {
	if !fs.IsAt(l.file.f, l.path) {
		fresh, err := openLock(l.path)
		if err != nil {
			return err
		}
		l.file.close()
		l.file = fresh
	}
	return fs.TryLock(l.file.f, how)
}

// holder says who has locked the file, as far as that can be seen.
func (l *namedLock) holder() string {
	p := gpu.Process{PID: lockedBy(l.file.f)}
	if p.PID == 0 {
		return "another process"
	}
	p.Identify()
	return Holder{PID: p.PID, User: p.User, Program: p.Name}.String()
}

// leave counts one lease less.
func (h *hostLock) leave() {
	if h.leases--; h.leases == 0 {
		_ = fs.Unlock(h.file.f) // it cannot fail on an open file
	}
}

// gpuLock is the path of a device's lock.
func gpuLock(hostLock, gpuLocks string, d gpu.Device) string {
	name := filepath.Base(d.UUID)
	if gpuLocks == "" {
		return hostLock + "." + name
	}
	return filepath.Join(gpuLocks, name)
}

// gpu locks one device against other processes.
func (h *hostLock) gpu(d gpu.Device) (*fileLock, error) {
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
		if err := fs.TryLock(f.f, fs.Exclusive); err != nil {
			f.close()
			return nil, err
		}
		if fs.IsAt(f.f, path) {
			return f, nil
		}
		f.close() // somebody tidied up between: the next one may have locked another file of that name
	}
}

func (h *hostLock) close() error {
	h.wishes.Close()
	return errors.Join(h.file.close(), h.turn.file.close())
}

// fileLock is a file that is there only to be locked.
type fileLock struct {
	f *os.File
}

// openLock opens a lock file, which may belong to another user: it need not be writable, and no link is followed and no
// pipe waited for, as the directory may be open to all.
func openLock(path string) (*fileLock, error) {
	const careful = unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(path, os.O_RDWR|careful, 0)
	if errors.Is(err, os.ErrNotExist) {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|careful, 0o644)
		if err == nil {
			_ = f.Chmod(0o644) // whatever the umask
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
	return &fileLock{f}, nil
}

func (l *fileLock) close() error { return l.f.Close() }
