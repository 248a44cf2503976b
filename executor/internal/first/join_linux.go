package first

import (
	"runtime"
	"syscall"
	"unsafe"

	"github.com/benchgraph/benchgraph/executor/internal/first/linux"
)

// The further files that a process that joins is given.
const (
	userFD    = 4 // the user namespace of the sandbox whose network it joins
	networkFD = 5
)

// Ambient are the privileges that the first process needs to set up its namespaces. They mean nothing outside of them.
var Ambient = []uintptr{linux.CAP_SYS_ADMIN, linux.CAP_NET_ADMIN, linux.CAP_SYS_RESOURCE, linux.CAP_SETPCAP}

// join starts a first process in a user and a network namespace that are there. Only a process of one thread may go
// into another user namespace, and a Go program never is one: so it is a fork of this one that does. Then this waits
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
	syscall.Close(controlFD) // the other end sees when the first process is gone
	for {
		if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && err != syscall.EINTR {
			return 0
		}
	}
}

// joining is all that the fork needs: nothing can be made there.
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
	// A sibling of the one that makes it: a child of this process, whose namespace of processes is not the one it waits
	// in.
	a.clone = linux.CLONE_NEWPID | linux.CLONE_NEWNS | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS | linux.CLONE_PARENT |
		uintptr(syscall.SIGCHLD)
	return a
}

// fork forks, and the child goes into the namespaces, starts the first process and ends. Nothing of Go's runtime is
// there in the children: no other thread, no allocation, no growing stack.
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
