package fs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func writeBack(f *os.File, from, bytes int64) {
	_ = unix.SyncFileRange(int(f.Fd()), from, bytes, unix.SYNC_FILE_RANGE_WRITE) // the final sync returns the error
}

// SyncAll syncs everything written to the file system of f. Since Linux 5.8, it returns an error if bytes could not
// be written; on older kernels, digests reveal the loss.
func SyncAll(f *os.File) error {
	for {
		if err := unix.Syncfs(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
