package fs

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// LockKind is shared or exclusive.
type LockKind int

// Any number of processes can hold the shared lock of a file. Only one process can hold the exclusive lock.
const (
	Shared    LockKind = unix.LOCK_SH
	Exclusive LockKind = unix.LOCK_EX
)

// Lock locks an open file. It waits while another process holds the lock.
//
// The kernel releases the lock when the process ends. Locks also work between containers that share a directory but
// have separate process numbers.
func Lock(f *os.File, kind LockKind) error { return flock(f, int(kind)) }

// TryLock locks an open file without waiting. Held reports whether its error means that another process holds the lock.
func TryLock(f *os.File, kind LockKind) error { return flock(f, int(kind)|unix.LOCK_NB) }

// LockWithin calls TryLock until it succeeds or the limit has passed.
func LockWithin(f *os.File, kind LockKind, limit time.Duration) error {
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		if err := TryLock(f, kind); !Held(err) || time.Now().After(end) {
			return err
		}
	}
}

// Unlock releases the lock of a file. Closing the file releases the lock, too.
func Unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

// Held reports whether an error of TryLock or LockWithin means that another process holds the lock.
func Held(err error) bool { return errors.Is(err, unix.EWOULDBLOCK) }

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// IsAt reports whether a path still names an open file. The owner of a lock must check this if others may remove the
// file: the lock of a removed file excludes nobody. A symbolic link at the path is another file.
func IsAt(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, named)
}
