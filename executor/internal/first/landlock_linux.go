package first

import (
	"encoding/json"
	"errors"
	"os"
	"syscall"
	"unsafe"

	"github.com/benchgraph/benchgraph/executor/internal/first/linux"
)

// LandlockVersion returns the kernel's version of Landlock; 0: none.
func LandlockVersion() int {
	v, _, errno := syscall.Syscall(linux.SYS_LANDLOCK_CREATE_RULESET, 0, 0, linux.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// Versions of Landlock that added features. Before LandlockMoves, files could not be moved to another directory.
const (
	LandlockMoves    = 2
	landlockTruncate = 3
	landlockNetwork  = 4
	landlockDevices  = 5
	landlockScopes   = 6
)

// Rights to files, by purpose.
const (
	toRead = linux.LANDLOCK_ACCESS_FS_EXECUTE | linux.LANDLOCK_ACCESS_FS_READ_FILE | linux.LANDLOCK_ACCESS_FS_READ_DIR
	// All rights that exist for a file that is no directory.
	toFile = linux.LANDLOCK_ACCESS_FS_EXECUTE | linux.LANDLOCK_ACCESS_FS_READ_FILE |
		linux.LANDLOCK_ACCESS_FS_WRITE_FILE | linux.LANDLOCK_ACCESS_FS_TRUNCATE | linux.LANDLOCK_ACCESS_FS_IOCTL_DEV
	toAll = toFile | toRead | linux.LANDLOCK_ACCESS_FS_REMOVE_DIR | linux.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		linux.LANDLOCK_ACCESS_FS_MAKE_CHAR | linux.LANDLOCK_ACCESS_FS_MAKE_DIR | linux.LANDLOCK_ACCESS_FS_MAKE_REG |
		linux.LANDLOCK_ACCESS_FS_MAKE_SOCK | linux.LANDLOCK_ACCESS_FS_MAKE_FIFO | linux.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		linux.LANDLOCK_ACCESS_FS_MAKE_SYM | linux.LANDLOCK_ACCESS_FS_REFER
	toNetwork = linux.LANDLOCK_ACCESS_NET_BIND_TCP | linux.LANDLOCK_ACCESS_NET_CONNECT_TCP
	toOthers  = linux.LANDLOCK_SCOPE_SIGNAL | linux.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
)

// ruleset returns the rights that the given version of Landlock can restrict.
func (f *Fence) ruleset(version int) linux.LandlockRulesetAttr {
	r := linux.LandlockRulesetAttr{Handled_access_fs: toAll}
	if version < landlockTruncate {
		r.Handled_access_fs &^= linux.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version < landlockDevices {
		r.Handled_access_fs &^= linux.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= landlockNetwork && f.Ports != nil {
		r.Handled_access_net = toNetwork
	}
	if version >= landlockScopes {
		r.Scoped = linux.LANDLOCK_SCOPE_SIGNAL
		if f.Sockets {
			r.Scoped = toOthers
		}
	}
	return r
}

// enclose puts this thread, and so the program, behind the fence for good. The thread must have no_new_privs set.
func (f *Fence) enclose() (step string, err error) {
	version := LandlockVersion()
	if version < LandlockMoves {
		return "speak Landlock", syscall.ENOSYS
	}
	handled := f.ruleset(version)
	fd, _, errno := syscall.Syscall(linux.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&handled)), unsafe.Sizeof(handled), 0)
	if errno != 0 {
		return "make rules of Landlock", errno
	}
	defer syscall.Close(int(fd))
	for _, rule := range []struct {
		paths  []string
		rights uint64
	}{{f.Read, toRead}, {f.Write, toAll}} {
		for _, path := range rule.paths {
			if err := allow(int(fd), path, rule.rights&handled.Handled_access_fs); err != nil {
				return "allow access to " + path, err
			}
		}
	}
	for _, port := range f.Ports {
		rule := linux.LandlockNetPortAttr{Allowed_access: handled.Handled_access_net, Port: uint64(port)}
		if handled.Handled_access_net == 0 {
			break
		}
		const kind = 2 // LANDLOCK_RULE_NET_PORT
		_, _, errno := syscall.Syscall6(linux.SYS_LANDLOCK_ADD_RULE, fd, kind, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
		if errno != 0 {
			return "allow a port", errno
		}
	}
	if _, _, errno := syscall.RawSyscall(linux.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return "apply the rules of Landlock", errno
	}
	return "", nil
}

// allow gives rights to a file or a directory tree. Paths that no longer exist are skipped.
func allow(ruleset int, path string, rights uint64) error {
	at, err := syscall.Open(path, linux.O_PATH|syscall.O_CLOEXEC, 0)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EACCES) {
		return nil
	}
	if err != nil {
		return err
	}
	defer syscall.Close(at)
	var info syscall.Stat_t
	if err := syscall.Fstat(at, &info); err != nil {
		return err
	}
	if info.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		rights &= toFile
	}
	rule := linux.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(at)}
	_, _, errno := syscall.Syscall6(linux.SYS_LANDLOCK_ADD_RULE,
		uintptr(ruleset), linux.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// failed sends the reason why the program will not run.
func failed(step string, err error) int {
	if text, err := json.Marshal(refusal(step, err)); err == nil {
		_, _ = syscall.Write(fenceFailFD, text) // if that fails, the exit status still reports a failure
	}
	return 1
}

// Files of a process that goes behind a fence.
const (
	fenceSpecFD = 3 // the Spec, as JSON
	fenceFailFD = 4 // a Refusal, as JSON; empty: the program runs
)

// fence goes behind Spec.Fence and becomes the program. There are no namespaces to set up.
func fence() int {
	syscall.CloseOnExec(fenceFailFD)
	p := &process{}
	if err := p.read(fenceSpecFD); err != nil {
		return failed("read what is to be done", err)
	}
	syscall.Umask(0o022)
	if os.Geteuid() == 0 {
		if step, err := giveUp(); err != nil {
			return failed(step, err)
		}
	} else if err := linux.Prctl(linux.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return failed("forbid new privileges", err)
	}
	for _, do := range []func() (step string, err error){withoutKeys, p.spec.Fence.enclose} {
		if step, err := do(); err != nil {
			return failed(step, err)
		}
	}
	if p.spec.Trial {
		return 0
	}
	path, err := p.spec.program()
	for tries := 0; err == nil; tries++ {
		err = syscall.Exec(path, p.spec.Argv, p.spec.Env)
		// A fork by another thread of the starting process may hold a just written program open for a moment.
		if err == syscall.ETXTBSY && tries < 100 {
			err = syscall.Nanosleep(&syscall.Timespec{Nsec: 10e6}, nil)
		}
	}
	return failed("", err)
}
