// Package guard protects the memory, environment and files of this process from programs without a sandbox.
package guard

import (
	"errors"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// reaching are capabilities with which root can read other processes, the kernel or disks.
var reaching = []uintptr{unix.CAP_BPF, unix.CAP_CHECKPOINT_RESTORE, unix.CAP_DAC_READ_SEARCH, unix.CAP_MKNOD,
	unix.CAP_PERFMON, unix.CAP_SYS_ADMIN, unix.CAP_SYS_MODULE, unix.CAP_SYS_PTRACE, unix.CAP_SYS_RAWIO}

// Start calls launch, which starts a program, without the capabilities to read other processes. From the first call
// on, only a process with such a capability can read the memory, environment and descriptors of this process. The
// calling goroutine must have its own thread, which ends with the goroutine.
func Start(launch func() error) error {
	if err := hide(); err != nil {
		return err
	}
	runtime.LockOSThread() // never unlocked: no other program may start without these capabilities
	if err := drop(); err != nil {
		return err
	}
	return launch()
}

// hide makes this process undumpable, so that the kernel denies access to it. A process that is not root then can no
// longer write the maps of user namespaces; so only a process whose programs have no sandbox is hidden.
var hide = sync.OnceValue(func() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
})

// drop removes the capabilities from all programs that this thread starts.
func drop() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	for _, c := range reaching {
		sets[c/32].Inheritable &^= 1 << (c % 32)
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return os.NewSyscallError("capset", err)
	}
	for _, c := range reaching {
		// EINVAL: this kernel has no such capability. EPERM: this process lacks it, and its programs will, too.
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		may := os.Geteuid() != 0 && errors.Is(err, unix.EPERM) && sets[c/32].Permitted&(1<<(c%32)) == 0
		if err != nil && !errors.Is(err, unix.EINVAL) && !may {
			if in, _ := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); in != 0 {
				return os.NewSyscallError("prctl", err)
			}
		}
	}
	return nil
}
