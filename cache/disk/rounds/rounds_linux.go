package rounds

import (
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
