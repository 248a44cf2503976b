package first

import (
	"runtime"
	"syscall"
	"unsafe"

	"github.com/benchgraph/benchgraph/executor/internal/first/linux"
)

// Additional files of a process that joins.
const (
	userFD    = 4 // user namespace of the sandbox whose network is joined
	networkFD = 5
)

// Ambient are the capabilities that the first process needs to set up its namespaces. They have no effect outside of
// them.
var Ambient = []uintptr{linux.CAP_SYS_ADMIN, linux.CAP_NET_ADMIN, linux.CAP_SYS_RESOURCE, linux.CAP_SETPCAP}

// join starts a first process in existing user and network namespaces. Only a process with a single thread may enter
// another user namespace, and a Go program never has one thread: so a fork of this process enters it. Then join waits
// for its end.
func join() int {
	for _, fd := range []int{userFD, networkFD} {
		syscall.CloseOnExec(fd)
	}
	a := assembled()
	var all [8]byte
	for i := range all {
		all[i] = 0xff
	}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, linux.SIG_SETMASK, uintptr(unsafe.Pointer(&all)),
		uintptr(unsafe.Pointer(&a.mask)), 8, 0, 0)
	middle := fork(a)
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, linux.SIG_SETMASK,
		uintptr(unsafe.Pointer(&a.mask)), 0, 8, 0, 0)
	runtime.KeepAlive(a)
	if int(middle) <= 0 {
		return 1
	}
	syscall.Close(controlFD) // so that the other end notices when the first process ends
	for {
		if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && err != syscall.EINTR {
			return 0
		}
	}
}

// joining holds everything that the fork needs: the fork cannot allocate.
type joining struct {
	mask   [8]byte
	header linux.CapUserHeader
	data   [2]linux.CapUserData
	caps   []uintptr
	path   *byte
	argv   [2]*byte
	envv   [2]*byte
	fork   uintptr // flags
	clone  uintptr
}

func assembled() *joining {
	a := &joining{caps: Ambient, header: linux.CapUserHeader{Version: linux.LINUX_CAPABILITY_VERSION_3}}
	for _, c := range Ambient {
		a.data[c/32].Effective |= 1 << (c % 32)
	}
	for i := range a.data {
		a.data[i].Permitted, a.data[i].Inheritable = a.data[i].Effective, a.data[i].Effective
	}
	a.path, _ = syscall.BytePtrFromString("/proc/self/exe")
	a.argv[0], _ = syscall.BytePtrFromString(Name)
	a.envv[0], _ = syscall.BytePtrFromString(Environment)
	a.fork = uintptr(syscall.SIGCHLD)
	// CLONE_PARENT makes the clone a child of this process instead of the fork: the PID namespace in which this
	// process waits differs from the clone's.
	a.clone = linux.CLONE_NEWPID | linux.CLONE_NEWNS | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS | linux.CLONE_PARENT |
		uintptr(syscall.SIGCHLD)
	return a
}

// fork forks; the child enters the namespaces, starts the first process and ends. Go's runtime does not work in the
// children: no other threads, no allocation, no growing stack.
//
//go:norace
//go:noinline
func fork(a *joining) uintptr {
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, a.fork, 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid
	}
	if _, _, errno = syscall.RawSyscall(linux.SYS_SETNS, userFD, linux.CLONE_NEWUSER, 0); errno != 0 {
		goto end
	}
	if _, _, errno = syscall.RawSyscall(linux.SYS_SETNS, networkFD, linux.CLONE_NEWNET, 0); errno != 0 {
		goto end
	}
	if pid, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, a.clone, 0, 0, 0, 0, 0); errno != 0 || pid != 0 {
		goto end
	}
	if _, _, errno = syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&a.header)),
		uintptr(unsafe.Pointer(&a.data[0])), 0); errno != 0 {
		goto end
	}
	for i := 0; i < len(a.caps); i++ {
		if _, _, errno = syscall.RawSyscall6(syscall.SYS_PRCTL, linux.PR_CAP_AMBIENT, linux.PR_CAP_AMBIENT_RAISE,
			a.caps[i], 0, 0, 0); errno != 0 {
			goto end
		}
	}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, linux.SIG_SETMASK,
		uintptr(unsafe.Pointer(&a.mask)), 0, 8, 0, 0)
	_, _, errno = syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(a.path)),
		uintptr(unsafe.Pointer(&a.argv[0])), uintptr(unsafe.Pointer(&a.envv[0])))
end:
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(errno)&0xff, 0, 0)
	}
}
