package executor_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor"
)

// attacks are what a candidate may do that wants to win. Each prints its name if it succeeds. VICTIM is another process
// of the same user, SHM its file in /dev/shm, PORT its port, SOCKET its abstract socket.
const attacks = `
	try() { name=$1; shift; if ("$@") >/dev/null 2>&1; then echo "$name"; fi; }
	for sig in 0 STOP TERM KILL; do try "signal $sig" kill -$sig $VICTIM; done
	try 'nice of others' renice -n 5 -p $VICTIM
	try 'cores of others' taskset -p 1 $VICTIM
	try 'scheduling of others' chrt -b -p 0 $VICTIM
	try 'a higher priority' nice -n -5 sh -c 'test $(nice) -lt 0'
	try 'real time' chrt -f 10 true
	try 'limits of others' prlimit --pid $VICTIM --nofile=64:64
	try 'environment of others' cat /proc/$VICTIM/environ
	try 'memory of others' dd if=/proc/$VICTIM/mem of=/dev/null bs=1 count=1
	try 'files of others' ls /proc/$VICTIM/fd/
	try 'other namespaces' nsenter --target $VICTIM --mount --pid true
	try 'clock' date -s '2030-01-01'
	try 'host name' hostname benchgraph-attack-of-$VICTIM
	for file in /proc/sys/vm/drop_caches /proc/sys/kernel/core_pattern /proc/sys/kernel/randomize_va_space \
		/proc/sysrq-trigger /sys/kernel/mm/transparent_hugepage/enabled /sys/devices/system/cpu/cpu1/online /sys/fs/cgroup/cgroup.procs; do
		try "writable $file" sh -c "test -e $file && : >>$file"
	done
	try 'out-of-memory score' sh -c 'echo -1000 >/proc/self/oom_score_adj'
	try 'chroot' chroot / true
	try 'another user' setpriv --reuid 65533 --clear-groups true
	try 'terminal' sh -c ': </dev/tty'
	try 'shared memory' test -e "$SHM"
	try 'port of others' bash -c ": </dev/tcp/127.0.0.1/$PORT"
	if command -v python3 >/dev/null; then
		try 'abstract socket of others' python3 -c '
import os, socket
socket.socket(socket.AF_UNIX).connect("\0" + os.environ["SOCKET"])'
		try 'ptrace of others' python3 -c '
import ctypes, os, sys
sys.exit(ctypes.CDLL(None).ptrace(16, int(os.environ["VICTIM"]), 0, 0) != 0)'
		try 'ptrace of the first process' python3 -c '
import ctypes, sys
sys.exit(ctypes.CDLL(None).ptrace(16, 1, 0, 0) != 0)'
		try 'keys of the session' python3 -c '
import ctypes, os, sys
call = {"x86_64": 248, "aarch64": 217}[os.uname().machine] # add_key
ring = -3 # of the session
sys.exit(ctypes.CDLL(None).syscall(call, b"user", b"benchgraph-attack", b"x", 1, ctypes.c_long(ring)) < 0)'
		try 'raw packets' python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'
	fi
	set -- /proc/self/fd/*
	for fd; do case $fd in */0|*/1|*/2|*/\*) ;; *) if test -e "$fd"; then echo "inherited $(readlink "$fd")"; fi; esac; done
	echo over`

func TestACandidateThatWantsToWinDoesNot(t *testing.T) {
	needSandbox(t)
	attack(t, executor.NewHost(executor.HostOptions{}))
}

// attack runs a candidate that wants to win.
func attack(t *testing.T, h *executor.Host) {
	victim := exec.Command("sleep", "1000")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = victim.Process.Kill()
		_ = victim.Wait()
	})
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	name := fmt.Sprintf("benchgraph-test-%d", os.Getpid())
	socket, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	shm := filepath.Join("/dev/shm", name)
	if err := os.WriteFile(shm, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(shm)
	leak, err := os.Open("/")
	if err == nil {
		_, err = unix.FcntlInt(leak.Fd(), unix.F_SETFD, 0) // as one that a shell has opened for benchgraph
	}
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	before := scheduling(t, victim.Process.Pid)
	out := inSandboxOf(t, h, executor.Sandbox{}, attacks, fmt.Sprint("VICTIM=", victim.Process.Pid), "SHM="+shm,
		"SOCKET="+name,
		fmt.Sprint("PORT=", port.Addr().(*net.TCPAddr).Port))
	if out != "over\n" {
		t.Errorf("these succeed:\n%s", strings.TrimSuffix(out, "over\n"))
	}
	if after := scheduling(t, victim.Process.Pid); after != before {
		t.Errorf("the victim had %s, and has %s", before, after)
	}
	if err := victim.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the victim: %v", err)
	}
	// Outside, the same attacks do succeed: else nothing was tested.
	cmd := exec.Command("sh", "-uc", strings.Replace(attacks, "STOP TERM KILL", "CONT", 1))
	cmd.Env = append(os.Environ(), fmt.Sprint("VICTIM=", victim.Process.Pid), "SHM="+shm, "SOCKET="+name,
		fmt.Sprint("PORT=", port.Addr().(*net.TCPAddr).Port))
	if os.Getuid() == 0 {
		return // they would change the machine
	}
	text, err := cmd.CombinedOutput()
	for _, one := range []string{"signal 0", "nice of others", "environment of others", "files of others",
		"shared memory", "keys of the session"} {
		if !strings.Contains(string(text), one+"\n") {
			t.Errorf("without a sandbox, %q does not succeed either: %v\n%s", one, err, text)
		}
	}
}

// scheduling is when and where a process runs.
func scheduling(t *testing.T, pid int) string {
	t.Helper()
	var cores unix.CPUSet
	err := unix.SchedGetaffinity(pid, &cores)
	priority, err2 := unix.Getpriority(unix.PRIO_PROCESS, pid)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(cores.Count(), " cores, priority ", priority)
}

// TestSandboxesOfAnOrdinaryUser runs the tests of sandboxes once more, as a user who may do nothing.
func TestSandboxesOfAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	needSandbox(t)
	dir, err := os.MkdirTemp("", "benchgraph-user-") // others can look into it, unlike into t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "executor.test")
	if err := errors.Join(os.WriteFile(path, program, 0o755), os.Chown(dir, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-test.run",
		"^(TestASandbox(Shows|Gives|Ends)|TestACandidate|TestASpare|TestServerAndClientOfASandbox)", "-test.v")
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestACandidateThatWantsToWinDoesNot") {
		t.Errorf("%v\n%s", err, out)
	}
}
