package rounds

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// syncsWhole reports whether syncfs makes files on the file system of f durable. On others, such as those of FUSE,
// syncfs need not reach the disk, though fsync does.
func syncsWhole(f *os.File) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return false
	}
	return slices.Contains([]int64{
		unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC,
		unix.OVERLAYFS_SUPER_MAGIC,
	}, int64(st.Type))
}

// syncAll makes everything that was written to the file system of f durable. Since Linux 5.8, it returns an error for
// bytes that could not be written; on older kernels, only the digests show that loss.
func syncAll(f *os.File) error {
	for {
		if err := unix.Syncfs(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
