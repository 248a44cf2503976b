//go:build linux

// Package linux is the part of golang.org/x/sys/unix that the first process of a sandbox needs beyond package
// syscall, with the same names. Go initializes packages in the order of their paths, and golang.org/x/sys/unix comes
// after hundreds of others: the first process would wait for all of them. A test compares each name with that
// package.
package linux

import (
	"syscall"
	"unsafe"
)

// Capabilities (linux/capability.h).
const (
	CAP_SETPCAP                = 8
	CAP_NET_ADMIN              = 12
	CAP_SYS_ADMIN              = 21
	CAP_SYS_RESOURCE           = 24
	CAP_LAST_CAP               = 40
	LINUX_CAPABILITY_VERSION_3 = 0x20080522
)

// Namespaces (linux/sched.h).
const (
	CLONE_PARENT  = 0x8000
	CLONE_NEWNS   = 0x20000
	CLONE_NEWUTS  = 0x4000000
	CLONE_NEWIPC  = 0x8000000
	CLONE_NEWUSER = 0x10000000
	CLONE_NEWPID  = 0x20000000
	CLONE_NEWNET  = 0x40000000
)

// Files and mounts (linux/fcntl.h, linux/mount.h).
const (
	AT_FDCWD                = -100
	AT_EMPTY_PATH           = 0x1000
	AT_RECURSIVE            = 0x8000
	O_PATH                  = 0x200000
	CLOSE_RANGE_CLOEXEC     = 0x4
	OPEN_TREE_CLONE         = 0x1
	OPEN_TREE_CLOEXEC       = 0x80000
	MOVE_MOUNT_F_EMPTY_PATH = 0x4
	MOVE_MOUNT_T_SYMLINKS   = 0x10
	MOUNT_ATTR_RDONLY       = 0x1
	MOUNT_ATTR_NOSUID       = 0x2
	MOUNT_ATTR_NODEV        = 0x4
	MOUNT_ATTR_NOEXEC       = 0x8
)

// Landlock (linux/landlock.h).
const (
	LANDLOCK_CREATE_RULESET_VERSION     = 0x1
	LANDLOCK_RULE_PATH_BENEATH          = 0x1
	LANDLOCK_ACCESS_FS_EXECUTE          = 0x1
	LANDLOCK_ACCESS_FS_WRITE_FILE       = 0x2
	LANDLOCK_ACCESS_FS_READ_FILE        = 0x4
	LANDLOCK_ACCESS_FS_READ_DIR         = 0x8
	LANDLOCK_ACCESS_FS_REMOVE_DIR       = 0x10
	LANDLOCK_ACCESS_FS_REMOVE_FILE      = 0x20
	LANDLOCK_ACCESS_FS_MAKE_CHAR        = 0x40
	LANDLOCK_ACCESS_FS_MAKE_DIR         = 0x80
	LANDLOCK_ACCESS_FS_MAKE_REG         = 0x100
	LANDLOCK_ACCESS_FS_MAKE_SOCK        = 0x200
	LANDLOCK_ACCESS_FS_MAKE_FIFO        = 0x400
	LANDLOCK_ACCESS_FS_MAKE_BLOCK       = 0x800
	LANDLOCK_ACCESS_FS_MAKE_SYM         = 0x1000
	LANDLOCK_ACCESS_FS_REFER            = 0x2000
	LANDLOCK_ACCESS_FS_TRUNCATE         = 0x4000
	LANDLOCK_ACCESS_FS_IOCTL_DEV        = 0x8000
	LANDLOCK_ACCESS_NET_BIND_TCP        = 0x1
	LANDLOCK_ACCESS_NET_CONNECT_TCP     = 0x2
	LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET = 0x1
	LANDLOCK_SCOPE_SIGNAL               = 0x2
)

// System call filters (linux/seccomp.h, linux/audit.h).
const (
	SECCOMP_SET_MODE_FILTER        = 0x1
	SECCOMP_FILTER_FLAG_SPEC_ALLOW = 0x4
	SECCOMP_RET_ERRNO              = 0x50000
	SECCOMP_RET_ALLOW              = 0x7fff0000
	AUDIT_ARCH_X86_64              = 0xc000003e
	AUDIT_ARCH_I386                = 0x40000003
	AUDIT_ARCH_AARCH64             = 0xc00000b7
	AUDIT_ARCH_ARM                 = 0x40000028
)

// Operations of a process on itself (linux/prctl.h, asm/signal.h).
const (
	PR_SET_NO_NEW_PRIVS  = 38
	PR_CAP_AMBIENT       = 47
	PR_CAP_AMBIENT_RAISE = 2
	SIG_SETMASK          = 2
)

// System calls. Their numbers are the same on all processors from 424 on.
const (
	SYS_OPEN_TREE               = 428
	SYS_MOVE_MOUNT              = 429
	SYS_CLOSE_RANGE             = 436
	SYS_MOUNT_SETATTR           = 442
	SYS_LANDLOCK_CREATE_RULESET = 444
	SYS_LANDLOCK_ADD_RULE       = 445
	SYS_LANDLOCK_RESTRICT_SELF  = 446
)

type (
	// CapUserHeader and CapUserData are the arguments of Capset, which takes two of the latter.
	CapUserHeader struct {
		Version uint32
		Pid     int32
	}
	CapUserData struct{ Effective, Permitted, Inheritable uint32 }

	// MountAttr is the argument of MountSetattr.
	MountAttr struct{ Attr_set, Attr_clr, Propagation, Userns_fd uint64 }

	// LandlockRulesetAttr is the argument of SYS_LANDLOCK_CREATE_RULESET. Kernels accept a shorter struct, and a
	// longer one if the additional fields are zero.
	LandlockRulesetAttr struct{ Handled_access_fs, Handled_access_net, Scoped uint64 }

	// LandlockPathBeneathAttr is the argument of SYS_LANDLOCK_ADD_RULE for files, LandlockNetPortAttr for ports.
	LandlockPathBeneathAttr struct {
		Allowed_access uint64
		Parent_fd      int32
	}
	LandlockNetPortAttr struct{ Allowed_access, Port uint64 }
)

// Capset sets the capabilities of this thread.
func Capset(header *CapUserHeader, data *[2]CapUserData) error {
	_, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET,
		uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)), 0)
	return failed(errno)
}

// Prctl calls prctl(2) on this thread.
func Prctl(option int, a, b, c, d uintptr) error {
	_, _, errno := syscall.Syscall6(syscall.SYS_PRCTL, uintptr(option), a, b, c, d, 0)
	return failed(errno)
}

// CloseRange closes the files from first to last; with CLOSE_RANGE_CLOEXEC, it marks them to be closed on exec.
func CloseRange(first, last uint32, flags int) error {
	_, _, errno := syscall.Syscall(SYS_CLOSE_RANGE, uintptr(first), uintptr(last), uintptr(flags))
	return failed(errno)
}

// OpenTree opens a mount tree, or a copy of it.
func OpenTree(dir int, path string, flags uint) (int, error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	fd, _, errno := syscall.Syscall(SYS_OPEN_TREE, uintptr(dir), uintptr(unsafe.Pointer(p)), uintptr(flags))
	return int(fd), failed(errno)
}

// MoveMount mounts a tree of OpenTree.
func MoveMount(fromDir int, from string, toDir int, to string, flags int) error {
	f, err := syscall.BytePtrFromString(from)
	if err != nil {
		return err
	}
	t, err := syscall.BytePtrFromString(to)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall6(SYS_MOVE_MOUNT, uintptr(fromDir), uintptr(unsafe.Pointer(f)), uintptr(toDir),
		uintptr(unsafe.Pointer(t)), uintptr(flags), 0)
	return failed(errno)
}

// MountSetattr sets flags of a mount; with AT_RECURSIVE, also of all mounts below it.
func MountSetattr(dir int, path string, flags uint, attr *MountAttr) error {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall6(SYS_MOUNT_SETATTR, uintptr(dir), uintptr(unsafe.Pointer(p)), uintptr(flags),
		uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr), 0)
	return failed(errno)
}

func failed(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}
