package fs

import "golang.org/x/sys/unix"

// setLock takes a lock that belongs to the open file, and not to all that the process has open.
const setLock = unix.F_OFD_SETLK
