package fs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func writeBack(f *os.File, from, bytes int64) {
	_ = unix.SyncFileRange(int(f.Fd()), from, bytes, unix.SYNC_FILE_RANGE_WRITE) // the sync at the end tells
}

// SyncAll makes durable all that was written to the file system of f. Since Linux 5.8 it tells of bytes that could not
// be written; before, as with any other loss, the digests do.
func SyncAll(f *os.File) error {
	for {
		if err := unix.Syncfs(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
