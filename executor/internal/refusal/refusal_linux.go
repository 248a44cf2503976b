// Package refusal explains errors of the kernel when a sandbox is set up.
package refusal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Passes reports whether an error means a temporary shortage on this machine. A command in a sandbox can use up the
// processes, open files and namespaces of its user. So such an error must never mean that this machine has no
// sandbox: the next command would run without one.
func Passes(err error) bool {
	for _, e := range []error{syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS,
		syscall.EDQUOT, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return full(err) && !off()
}

// full reports whether the limit of namespaces is reached.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EUSERS) }

// off reports whether one kind of namespace is forbidden.
func off() bool {
	return slices.ContainsFunc([]string{"user", "pid", "mnt", "ipc", "uts", "net"}, func(kind string) bool {
		return setting("user.max_"+kind+"_namespaces") == "0"
	})
}

// Limit names the limit to raise after a temporary error.
func Limit(err error) string {
	processes := fmt.Sprintf("processes (ulimit -u: %s; perhaps pids.max of a control group)",
		ulimit(unix.RLIMIT_NPROC))
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return processes
	case errors.Is(err, syscall.EMFILE):
		return fmt.Sprintf("open files (ulimit -n: %s)", ulimit(unix.RLIMIT_NOFILE))
	case errors.Is(err, syscall.ENFILE):
		return "open files of the machine (sysctl fs.file-max)"
	case full(err):
		return fmt.Sprintf("namespaces of a user (sysctl user.max_user_namespaces: %s)",
			setting("user.max_user_namespaces"))
	case errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.ENOBUFS):
		return "memory"
	}
	return processes + ", or of memory"
}

func ulimit(resource int) string {
	var limit unix.Rlimit
	if err := unix.Getrlimit(resource, &limit); err != nil || limit.Cur == unix.RLIM_INFINITY {
		return "unlimited"
	}
	return fmt.Sprint(limit.Cur)
}

// Remedy returns how to allow namespaces on a machine that refuses them permanently.
func Remedy(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSYS):
		return "it needs Linux 5.12 or newer"
	case setting("user.max_user_namespaces") == "0":
		return "sysctl user.max_user_namespaces=15000"
	case os.Geteuid() != 0 && setting("kernel.unprivileged_userns_clone") == "0":
		return "sysctl kernel.unprivileged_userns_clone=1"
	case os.Geteuid() != 0 && setting("kernel.apparmor_restrict_unprivileged_userns") == "1":
		return "give benchgraph an AppArmor profile with userns, or sysctl " +
			"kernel.apparmor_restrict_unprivileged_userns=0"
	case full(err):
		return "let each of the settings user.max_*_namespaces be more than 0"
	}
	return "in a container, start that with --security-opt seccomp=unconfined --security-opt " +
		"systempaths=unconfined (with AppArmor also --security-opt apparmor=unconfined), or give each block an image"
}

// setting returns the value of a kernel setting; empty: there is no such setting.
func setting(name string) string {
	text, _ := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	return strings.TrimSpace(string(text))
}

// Settings returns all settings by which the kernel decides whether this process can make namespaces.
func Settings() string {
	var name unix.Utsname
	_ = unix.Uname(&name) // cannot fail
	text := unix.ByteSliceToString(name.Release[:])
	namespace, _ := os.Readlink("/proc/self/ns/user")
	status, _ := os.ReadFile("/proc/self/status")
	text += "\n" + namespace + "\n"
	for line := range strings.Lines(string(status)) {
		switch field, _, _ := strings.Cut(line, ":"); field {
		case "Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp":
			text += line
		}
	}
	for _, name := range []string{
		"user.max_user_namespaces", "kernel.unprivileged_userns_clone", "kernel.apparmor_restrict_unprivileged_userns",
	} {
		text += setting(name) + "\n"
	}
	return text
}
