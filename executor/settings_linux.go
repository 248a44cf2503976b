package executor

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// StandardSandbox is the word of blocks that say nothing of a sandbox.
const StandardSandbox = "default"

// SandboxSettings returns all that decides whether this process can make a sandbox, and with which limits, at much less
// than the cost of making one: while the text stays the same, CheckSandbox and Enforced give the same answers.
func SandboxSettings() string {
	var name unix.Utsname
	_ = unix.Uname(&name) // it cannot fail
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
	for _, setting := range []string{
		"user.max_user_namespaces", "kernel.unprivileged_userns_clone", "kernel.apparmor_restrict_unprivileged_userns",
	} {
		text += kernelSetting(setting) + "\n"
	}
	limits, err := Enforced()
	return text + fmt.Sprintln(LandlockVersion(), limits, err)
}

// kernelSetting returns the value of a setting; empty: the kernel has none of this name.
func kernelSetting(name string) string {
	text, _ := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	return strings.TrimSpace(string(text))
}
