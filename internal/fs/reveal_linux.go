package fs

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// reveal makes a directory readable for its owner. hide gives it its mode back, unless another process has changed the
// mode meanwhile. reveal follows no link.
func reveal(dir string) (hide func(), ok bool) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	path := "/proc/self/fd/" + strconv.Itoa(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || os.Geteuid() == 0 || unix.Chmod(path, st.Mode&0o7777|0o500) != nil {
		unix.Close(fd)
		return nil, false
	}
	return func() {
		var now unix.Stat_t
		if unix.Fstat(fd, &now) == nil && now.Mode == st.Mode|0o500 {
			_ = unix.Chmod(path, st.Mode&0o7777)
		}
		unix.Close(fd)
	}, true
}
