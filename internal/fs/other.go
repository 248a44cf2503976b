//go:build !linux

package fs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const setLock = unix.F_SETLK

// NoExec returns false: this system does not report whether a mount forbids programs.
func NoExec(string) bool { return false }

func reveal(string) (hide func(), ok bool) { return nil, false }

func writeBack(*os.File, int64, int64) {}

// SyncAll is not supported: sync(2) does not wait for the disk on this system.
func SyncAll(*os.File) error { return errors.ErrUnsupported }
