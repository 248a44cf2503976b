package fs

import (
	"os"

	"golang.org/x/sys/unix"
)

func writeBack(f *os.File, from, bytes int64) {
	_ = unix.SyncFileRange(int(f.Fd()), from, bytes, unix.SYNC_FILE_RANGE_WRITE) // the sync at the end tells
}
