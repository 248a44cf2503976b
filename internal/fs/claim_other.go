//go:build !linux

package fs

import "golang.org/x/sys/unix"

const setLock = unix.F_SETLK
