package fs

import "golang.org/x/sys/unix"

// setLock sets a lock that belongs to the open file, not to the process.
const setLock = unix.F_OFD_SETLK
