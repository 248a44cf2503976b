//go:build unix

package device

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/internal/flock"
)

// hostLock keeps the pools of several processes apart: a pool holds it shared while it has a lease, and exclusively while
// it has a quiet one. The kernel frees it when its holder dies. A LocalPool's mutex guards it.
type hostLock struct {
	path   string
	gpus   string // directory of the devices' locks; empty: they lie beside path
	file   *fileLock
	leases int
}

func openHostLock(path, gpus string) (*hostLock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	if gpus != "" {
		if err := openToAll(gpus); err != nil {
			f.close()
			return nil, err
		}
	}
	return &hostLock{path: path, gpus: gpus, file: f}, nil
}

// openToAll makes a directory in which every user of the machine may put files, and nobody remove those of others.
func openToAll(dir string) error {
	err := os.Mkdir(dir, 0o777)
	if err == nil {
		return os.Chmod(dir, 0o777|fs.ModeSticky) // whatever the umask
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "open", Path: dir, Err: unix.ENOTDIR}
	}
	if info.Mode()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("in %s everybody can remove the locks of others (%s): have its owner or root run chmod +t %[1]s", dir, info.Mode())
	}
	return nil
}

// enter counts one more lease, or says what it waits for.
func (h *hostLock) enter(quiet bool) string {
	how := flock.Shared
	if quiet {
		how = flock.Exclusive
	}
	if h.leases == 0 {
		if err := h.lock(how); err != nil {
			if flock.Held(err) && quiet {
				return "quiet: the end of what another process runs on this host"
			}
			if flock.Held(err) {
				return "the end of a quiet one of another process on this host"
			}
			return fmt.Sprintf("the host lock %s: %v", h.path, err)
		}
	}
	h.leases++
	return ""
}

// lock locks the file that is at the path now: something may have tidied up the one that was opened.
func (h *hostLock) lock(how flock.How) error {
	if !flock.IsAt(h.file.f, h.path) {
		fresh, err := openLock(h.path)
		if err != nil {
			return err
		}
		h.file.close()
		h.file = fresh
	}
	return flock.Try(h.file.f, how)
}

// leave counts one lease less.
func (h *hostLock) leave() {
	if h.leases--; h.leases == 0 {
		_ = flock.Unlock(h.file.f) // it cannot fail on an open file
	}
}

// gpuLock is the path of a device's lock.
func gpuLock(hostLock, gpuLocks string, d Device) string {
	name := filepath.Base(d.UUID)
	if gpuLocks == "" {
		return hostLock + "." + name
	}
	return filepath.Join(gpuLocks, name)
}

// gpu locks one device against other processes.
func (h *hostLock) gpu(d Device) (*fileLock, error) {
	path := gpuLock(h.path, h.gpus, d)
	for {
		f, err := openLock(path)
		if err != nil {
			return nil, err
		}
		if err := flock.Try(f.f, flock.Exclusive); err != nil {
			f.close()
			return nil, err
		}
		if flock.IsAt(f.f, path) {
			return f, nil
		}
		f.close() // somebody tidied up between: the next one may have locked another file of that name
	}
}

func (h *hostLock) close() error { return h.file.close() }

// fileLock is a file that is there only to be locked.
type fileLock struct {
	f *os.File
}

// openLock opens a lock file, which may belong to another user: it need not be writable, and no link is followed and no pipe
// waited for, as the directory may be open to all.
func openLock(path string) (*fileLock, error) {
	const careful = unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(path, os.O_RDWR|careful, 0)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|careful, 0o644)
		if err == nil {
			_ = f.Chmod(0o644) // whatever the umask
		} else if errors.Is(err, fs.ErrExist) { // somebody else has just made it
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
