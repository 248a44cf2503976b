// Package flock takes locks on open files. The kernel gives a lock back when the process ends, however it ends, and a lock holds between
// containers that share a directory but not their process numbers; a recorded process number would do neither.
package flock

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// How is the kind of a lock.
type How int

// Kinds of locks.
const (
	Shared    How = unix.LOCK_SH
	Exclusive How = unix.LOCK_EX
)

// Wait locks a file, however long that takes.
func Wait(f *os.File, how How) error { return call(f, int(how)) }

// Try locks a file, or returns an error for which Held is true.
func Try(f *os.File, how How) error { return call(f, int(how)|unix.LOCK_NB) }

// Within is Try, again and again until the limit is over.
func Within(f *os.File, how How, limit time.Duration) error {
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		if err := Try(f, how); !Held(err) || time.Now().After(end) {
			return err
		}
	}
}

// Unlock gives the lock of a file back, which closing the file does as well.
func Unlock(f *os.File) error { return call(f, unix.LOCK_UN) }

// Held reports whether an error of Try or Within says that somebody else has the lock.
func Held(err error) bool { return errors.Is(err, unix.EWOULDBLOCK) }

func call(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// IsAt reports whether a path still names an open file. Whoever has locked a file that others may remove must ask: a lock on a removed
// file excludes nobody. A symbolic link at the path is another file.
func IsAt(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, named)
}
