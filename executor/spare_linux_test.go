package executor_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/executortest"
	"github.com/benchgraph/benchgraph/executor/internal/namespace"
)

// firsts are the first processes that this process has started: their numbers, by their namespaces of processes.
func firsts() map[string]int {
	found := map[string]int{}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		text, err := os.ReadFile(dir + "/stat")
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if err != nil || fields[1] != strconv.Itoa(os.Getpid()) || !namespace.Runs(pid) {
			continue
		}
		if link, err := os.Readlink(dir + "/ns/pid"); err == nil {
			found[link] = pid
		}
	}
	return found
}

const printNamespace = "readlink /proc/self/ns/pid"

// spareOf runs a command, and returns the number and the namespace of the spare that is then there.
func spareOf(ctx context.Context, h *executor.Host) (pid int, name string, err error) {
	before := firsts()
	var out bytes.Buffer
	s, err := executor.Run(ctx, h, executor.Command{Argv: []string{"/bin/sh", "-c", printNamespace},
		Dir: "/tmp", Env: []string{"PATH=/usr/bin:/bin"}, Stdout: &out, Sandbox: &executor.Sandbox{}})
	if err != nil || !s.OK() {
		return 0, "", errors.Join(err, fmt.Errorf("%+v", s))
	}
	before[strings.TrimSpace(out.String())] = 0
	waitUntil(func() bool {
		for name, pid = range firsts() {
			if _, known := before[name]; !known {
				return true
			}
		}
		return false
	})
	return pid, name, nil
}

// withSpare returns a Host that has a spare, and the namespace of that.
func withSpare(t *testing.T) (*executor.Host, string) {
	t.Helper()
	needSandbox(t)
	h := executor.NewHost(executor.HostOptions{Owner: t.TempDir()})
	_, name, err := spareOf(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, name
}

func TestASparePassesTheSuite(t *testing.T) {
	needSandbox(t)
	executortest.Run(t, executortest.Traits{Adds: []string{"HOME"}}, func(t *testing.T) executor.Executor {
		h, _ := withSpare(t)
		return sandboxes{h}
	})
}

func TestASpareIsASandboxLikeAnother(t *testing.T) {
	h, _ := withSpare(t)
	attack(t, h)
}

func TestASpareIsUsedOnce(t *testing.T) {
	const script = printNamespace + `; cat /tmp/x /dev/shm/x 2>/dev/null || :; env | grep SECRET || :
		echo left >/tmp/x; echo left >/dev/shm/x`
	var h *executor.Host
	var spare string
	for used := false; !used; { // it is not if something was mounted on this machine meanwhile
		h, spare = withSpare(t)
		first := inSandboxOf(t, h, executor.Sandbox{}, script, "SECRET=x")
		if used = strings.HasPrefix(first, spare); !strings.HasSuffix(first, "]\nSECRET=x\n") {
			t.Fatalf("got %q", first)
		}
	}
	second := inSandboxOf(t, h, executor.Sandbox{}, script)
	if strings.HasPrefix(second, spare) || strings.Count(second, "\n") != 1 {
		t.Errorf("got %q", second)
	}
}

func TestASpareIsOfOneKindOfNetwork(t *testing.T) {
	h, spare := withSpare(t)
	outside, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	out := inSandboxOf(t, h, executor.Sandbox{Network: true}, printNamespace+"; readlink /proc/self/ns/net")
	if strings.HasPrefix(out, spare) || !strings.HasSuffix(out, "\n"+outside+"\n") {
		t.Errorf("the spare %s has no network, and the command is in %q", spare, out)
	}
}

// A spare has started nothing, so a daemon that hides everything is not its.
func TestASpareOwnsNoDaemon(t *testing.T) {
	h, _ := withSpare(t)
	cmd := lasting(t, hidden)
	if s, err := executor.Run(t.Context(), h, cmd); err != nil || !s.OK() || s.Left == 0 || alive(t, cmd.Dir, "life") {
		t.Errorf("%+v, %v, want some that were left, and are ended", s, err)
	}
}

// A mount made after a spare is visible to the next command, also without mount propagation.
func TestASpareDoesNotHideAMount(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount something")
	}
	needSandbox(t)
	out, err := spareOwner(t, "mounts").Output()
	if err != nil || string(out) != "mounted\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestASpareEndsWithItsHost(t *testing.T) {
	needSandbox(t)
	out, err := spareOwner(t, "close").Output()
	if err != nil || string(out) != "map[]\n" {
		t.Errorf("left: %q, %v", out, err)
	}
}

func TestASpareEndsWithAKilledOwner(t *testing.T) {
	needSandbox(t)
	owner := spareOwner(t, "wait")
	out, err := owner.StdoutPipe()
	if err == nil {
		err = owner.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, err2 := strconv.Atoi(strings.TrimSpace(line))
	fd, err3 := unix.PidfdOpen(pid, 0)
	err = errors.Join(err, err2, err3, owner.Process.Kill())
	_ = owner.Wait() // killed
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); err != nil {
		t.Error(err)
	}
}

// spareOwner is another process that has a spare.
func spareOwner(t *testing.T, what string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Dir = t.TempDir()
	cmd.Env, cmd.Stderr = append(os.Environ(), spareEnv+"="+what), os.Stderr
	if what == "mounts" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	}
	return cmd
}

// haveSpare is such a process.
func haveSpare(what string) {
	err := error(nil)
	if what == "mounts" {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	h := executor.NewHost(executor.HostOptions{})
	ctx := context.Background()
	pid, _, err2 := spareOf(ctx, h)
	err = errors.Join(err, err2)
	switch {
	case err != nil:
	case what == "mounts":
		err = mountAndLook(ctx, h)
	case what == "close":
		err = h.Close()
		fmt.Println(firsts())
	default:
		fmt.Println(pid)
		select {}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// mountAndLook mounts something, and has a command print what is there.
func mountAndLook(ctx context.Context, h *executor.Host) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	err = errors.Join(unix.Mount("none", dir, "tmpfs", 0, ""),
		os.WriteFile(filepath.Join(dir, "file"), []byte("mounted\n"), 0o644))
	if err != nil {
		return err
	}
	s, err := executor.Run(ctx, h, executor.Command{Argv: []string{"/bin/cat", filepath.Join(dir, "file")}, Dir: "/tmp",
		Stdout: os.Stdout, Stderr: os.Stderr, Sandbox: &executor.Sandbox{Shown: []executor.Mount{{Host: dir}}}})
	return errors.Join(err, h.Close(), map[bool]error{false: fmt.Errorf("%+v", s)}[s.OK()])
}
