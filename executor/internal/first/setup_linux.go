package first

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/benchgraph/benchgraph/executor/internal/first/linux"
)

// Mount flags control the program's access to files: it writes only to writable mounts, no program gives privileges,
// and no device works except those of its /dev.
const (
	shut = linux.MOUNT_ATTR_RDONLY | linux.MOUNT_ATTR_NOSUID | linux.MOUNT_ATTR_NODEV
	open = linux.MOUNT_ATTR_NOSUID | linux.MOUNT_ATTR_NODEV
)

// tree is a copy of a mount tree of the host, made before everything is hidden and mounted afterwards.
type tree struct {
	fd int // negative: an empty directory in memory
	to string
}

// setUp sets up the file systems that the program sees. The mounts are copies of the host's, in a new namespace: they
// do not change the host, and vanish with the last process. On an error, step names the failed step.
func (s *Spec) setUp() (step string, err error) {
	syscall.Umask(0o022)
	devices, step, err := s.devices()
	if err != nil {
		return step, err
	}
	trees, step, err := s.trees()
	if err != nil {
		return step, err
	}
	if err := setFlags(linux.AT_FDCWD, "/", shut); err != nil {
		return "make the system read-only", err
	}
	if step, err := s.processes(); err != nil {
		return step, err
	}
	var empty []int
	for _, path := range s.Empty {
		fd, err := hide(path)
		if errors.Is(err, syscall.ENOENT) {
			continue
		}
		if err != nil {
			return "hide " + path, err
		}
		if fd >= 0 {
			empty = append(empty, fd)
		}
	}
	if step, err := devs(devices); err != nil {
		return step, err
	}
	for _, t := range trees {
		if err := t.show(); err != nil {
			return "show " + t.to, err
		}
	}
	if err := seal(append(empty, linux.AT_FDCWD)); err != nil {
		return "make what is hidden read-only", err
	}
	if s.Loopback {
		return "bring up the loopback", loopback()
	}
	return "", nil
}

// cloneTree clones a mount tree of the host.
func cloneTree(path string, flags uint64) (int, error) {
	fd, err := linux.OpenTree(linux.AT_FDCWD, path, linux.OPEN_TREE_CLONE|linux.OPEN_TREE_CLOEXEC|linux.AT_RECURSIVE)
	if err != nil {
		return -1, err
	}
	return fd, setFlags(fd, "", flags)
}

// setFlags sets flags of all mounts below a path and detaches them from later mounts on the host.
func setFlags(fd int, path string, flags uint64) error {
	return linux.MountSetattr(fd, path, linux.AT_RECURSIVE|linux.AT_EMPTY_PATH,
		&linux.MountAttr{Attr_set: flags, Propagation: syscall.MS_PRIVATE})
}

// hide mounts an empty directory over a directory, and returns a file for the mount, since a later mount may cover the
// path. A file is covered by a device that cannot be opened, and the returned number is negative.
func hide(dir string) (int, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		var fd int
		if fd, err = cloneTree("/dev/null", shut); err == nil {
			err = tree{fd, dir}.show()
		}
		return -1, err
	}
	if err := tmpfs(dir, 0o755, "1m"); err != nil {
		return -1, err
	}
	return syscall.Open(dir, linux.O_PATH|syscall.O_CLOEXEC, 0)
}

// seal makes the directories read-only that had to be writable to make mount points: hidden directories, and /dev for
// AT_FDCWD.
func seal(fds []int) error {
	for _, fd := range fds {
		path := ""
		if fd == linux.AT_FDCWD {
			path = "/dev"
		}
		if err := linux.MountSetattr(fd, path, linux.AT_EMPTY_PATH,
			&linux.MountAttr{Attr_set: linux.MOUNT_ATTR_RDONLY}); err != nil {
			return err
		}
		if fd >= 0 {
			syscall.Close(fd)
		}
	}
	return nil
}

// trees returns the trees of all binds; an outer tree comes before the trees inside it.
func (s *Spec) trees() (all []tree, step string, err error) {
	binds := slices.Clone(s.Binds)
	slices.SortStableFunc(binds, func(a, b Bind) int { return cmp.Compare(a.To, b.To) })
	for _, b := range binds {
		flags := uint64(shut)
		if b.Writable {
			flags = open
		}
		fd := -1
		if b.From != "" {
			if fd, err = cloneTree(b.From, flags); err != nil {
				return nil, "take " + b.From, err
			}
		}
		all = append(all, tree{fd, b.To})
	}
	return all, "", nil
}

// show mounts a tree at its path. It makes the mount point if there is none.
func (t tree) show() error {
	if t.fd < 0 {
		return errors.Join(os.MkdirAll(t.to, 0o755), tmpfs(t.to, 0o1777, ""))
	}
	defer syscall.Close(t.fd)
	var info syscall.Stat_t
	if err := syscall.Fstat(t.fd, &info); err != nil {
		return err
	}
	if _, err := os.Stat(t.to); err != nil {
		if err := makeMountPoint(t.to, info.Mode&syscall.S_IFMT == syscall.S_IFDIR); err != nil {
			return err
		}
	}
	return linux.MoveMount(t.fd, "", linux.AT_FDCWD, t.to, linux.MOVE_MOUNT_F_EMPTY_PATH|linux.MOVE_MOUNT_T_SYMLINKS)
}

// makeMountPoint makes a mount point.
func makeMountPoint(path string, dir bool) error {
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(path[:max(1, strings.LastIndexByte(path, '/'))], 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func tmpfs(path string, mode uint32, size string) error {
	options := "mode=0" + strconv.FormatUint(uint64(mode), 8)
	if size != "" {
		options += ",size=" + size
	}
	return syscall.Mount("tmpfs", path, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, options)
}

// settings are files of /proc through which root can change the kernel even without capabilities.
var settings = []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi",
	"/proc/scsi"}

// processes mounts the /proc of the new PID namespace and protects the kernel's settings in it. It forbids new user
// namespaces, which would give privileges back.
func (s *Spec) processes() (step string, err error) {
	const flags = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC
	if err := syscall.Mount("proc", "/proc", "proc", flags, ""); err != nil {
		return "mount /proc", err
	}
	if err := set("/proc/sys/user/max_user_namespaces", 0); err != nil {
		return "forbid more namespaces", err
	}
	if s.Most > 0 && countsApart() {
		if err := set("/proc/sys/kernel/pid_max", s.Most); err != nil {
			return "bound the number of processes", err
		}
	}
	for _, path := range settings {
		fd, err := cloneTree(path, shut|linux.MOUNT_ATTR_NOEXEC)
		if errors.Is(err, syscall.ENOENT) {
			continue
		}
		if err == nil {
			err = tree{fd, path}.show()
		}
		if err != nil {
			return "protect " + path, err
		}
	}
	return "", nil
}

// set writes a kernel setting.
func set(path string, value int) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(strconv.Itoa(value) + "\n")
	return err
}

// countsApart reports whether pid_max is a setting of the PID namespace. Before Linux 6.14 it belongs to the whole
// machine, and root could change it from inside.
func countsApart() bool {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return false
	}
	major, rest, _ := strings.Cut(string(release), ".")
	minor, _, _ := strings.Cut(rest, ".")
	x, err := strconv.Atoi(major)
	y, _ := strconv.Atoi(strings.TrimRightFunc(minor, func(r rune) bool { return r < '0' || r > '9' }))
	return err == nil && (x > 6 || x == 6 && y >= 14)
}

// usual are the devices that every program may expect if the host has them.
var usual = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// devices copies the device nodes of the program.
func (s *Spec) devices() (all []tree, step string, err error) {
	for i, path := range slices.Concat(s.Devices, usual) {
		fd, err := cloneTree(path, linux.MOUNT_ATTR_NOSUID|linux.MOUNT_ATTR_NOEXEC)
		if i >= len(s.Devices) && errors.Is(err, syscall.ENOENT) {
			continue
		}
		if err != nil {
			return nil, "take " + path, err
		}
		all = append(all, tree{fd, path})
	}
	return all, "", nil
}

// devs mounts a /dev with only these devices, and with its own terminals and shared memory.
func devs(devices []tree) (step string, err error) {
	if err := tmpfs("/dev", 0o755, "1m"); err != nil {
		return "mount /dev", err
	}
	for _, t := range devices {
		if err := t.show(); err != nil {
			return "show " + t.to, err
		}
	}
	for _, link := range [][2]string{{"/proc/self/fd", "fd"}, {"fd/0", "stdin"}, {"fd/1", "stdout"}, {"fd/2", "stderr"},
		{"pts/ptmx", "ptmx"}} {
		if err := os.Symlink(link[0], "/dev/"+link[1]); err != nil {
			return "make /dev/" + link[1], err
		}
	}
	for _, dir := range []string{"/dev/pts", "/dev/shm"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return "make " + dir, err
		}
	}
	if err := syscall.Mount("devpts", "/dev/pts", "devpts", syscall.MS_NOSUID|syscall.MS_NOEXEC,
		"newinstance,ptmxmode=0666,mode=620"); err != nil {
		return "mount /dev/pts", err
	}
	return "mount /dev/shm", tmpfs("/dev/shm", 0o1777, "")
}

// loopback brings up the loopback of a new network namespace.
func loopback() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var request struct {
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], "lo")
	request.flags = syscall.IFF_UP | syscall.IFF_RUNNING
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS,
		uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}
