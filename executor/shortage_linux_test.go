package executor_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/executortest"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

// A machine that is short of something does not pass for one that makes no sandbox: the command does not run, and may
// be tried again.
func TestShortageIsNoFallback(t *testing.T) {
	if needtest.Apart(t) == "" {
		return
	}
	cmd := executortest.Shell(t, "echo ran without a sandbox")
	cmd.Sandbox = &executor.Sandbox{Tmp: t.TempDir()}
	host := executor.NewHost(executor.HostOptions{})
	var out strings.Builder
	cmd.Stdout = &out
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	low := was
	low.Cur = 5 // all numbers that are free are higher
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	checked, made := executor.CheckSandbox(), executor.SandboxOf()
	_, started := executor.Run(t.Context(), host, cmd)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{checked, started} {
		short, ok := errors.AsType[*executor.StartError](err)
		if !ok || !short.Passing || !strings.Contains(short.Remedy, "ulimit -n: 5") {
			t.Errorf("%#v: %v", err, err)
		}
	}
	if made != executor.Namespaces || out.String() != "" {
		t.Errorf("%s, %q", made, &out)
	}
	// Once the shortage has passed, the command runs in the sandbox.
	if s, err := executor.Run(t.Context(), host, cmd); err != nil || !s.OK() {
		t.Errorf("%+v, %v", s, err)
	}
}

// A user who has as many namespaces as he may may have one later; one who may have none never does.
func TestNamespacesThatAreUsedUp(t *testing.T) {
	if needtest.Apart(t) == "" {
		return
	}
	// The setting is that of the namespace of this process.
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("1\n"), 0); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "100")
	other.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, Pdeathsig: syscall.SIGKILL}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	err := executor.CheckSandbox()
	if kill := other.Process.Kill(); kill != nil {
		t.Fatal(kill)
	}
	_ = other.Wait()
	short, ok := errors.AsType[*executor.StartError](err)
	if !ok || !short.Passing || !strings.Contains(short.Remedy, "user.max_user_namespaces: 1") ||
		executor.SandboxOf() != executor.Namespaces {
		t.Errorf("%#v: %v; %s", err, err, executor.SandboxOf())
	}
}
