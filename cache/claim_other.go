//go:build !linux

package cache

import "golang.org/x/sys/unix"

const setLock = unix.F_SETLK
