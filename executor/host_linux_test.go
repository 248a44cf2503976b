package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/executortest"
	"github.com/benchgraph/benchgraph/executor/family"
)

// These make the test binary something else, in the directory that they name.
const (
	ownerEnv   = "EXECUTOR_TEST_OWNER"
	inheritEnv = "EXECUTOR_TEST_INHERIT"
	siblingEnv = "EXECUTOR_TEST_SIBLING"
	apartEnv   = "EXECUTOR_TEST_APART"
	spareEnv   = "EXECUTOR_TEST_SPARE"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("BENCHGRAPH_TEST_PROGRAM") // here the first process is what is tested
	if owner := os.Getenv(ownerEnv); owner != "" {
		beOwner(owner)
	}
	if dir := os.Getenv(inheritEnv); dir != "" {
		beHeir(dir)
	}
	if dir := os.Getenv(siblingEnv); dir != "" {
		haveSibling(dir)
	}
	if dir := os.Getenv(apartEnv); dir != "" {
		beApart(dir)
	}
	if what := os.Getenv(spareEnv); what != "" {
		haveSpare(what)
	}
	if pid := os.Getenv(hiddenEnv); pid != "" {
		lookFor(pid)
	}
	os.Exit(m.Run())
}

// lasting is a script after which everything that descends from it holds the pipe "life" open.
func lasting(t *testing.T, script string) executor.Command {
	cmd := executortest.Shell(t, "exec 9<>life; "+script)
	mkfifo(t, filepath.Join(cmd.Dir, "life"))
	cmd.Grace = 50 * time.Millisecond
	return cmd
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// alive says whether any process holds the pipe in dir.
func alive(t *testing.T, dir, name string) bool {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil && !errors.Is(err, syscall.ENXIO) {
		t.Fatal(err)
	}
	f.Close()
	return err == nil
}

func waitUntil(what func() bool) {
	for !what() {
		time.Sleep(2 * time.Millisecond)
	}
}

func exists(path string) func() bool {
	return func() bool { _, err := os.Stat(path); return err == nil }
}

// hidden is a daemon that has left its session, its parent and its environment.
const hidden = `(env -i /bin/sh -c 'setsid sh -c "trap \"\" TERM; : >ready; while :; do sleep 0.02; done" &' >/dev/null 2>&1 &)
while ! [ -e ready ]; do sleep 0.01; done`

func TestHostFindsADaemonWithoutEnvironment(t *testing.T) {
	h := executor.NewHost(executor.HostOptions{})
	cmd := lasting(t, hidden)
	s, err := executor.Run(t.Context(), h, cmd)
	if err != nil || !s.OK() || s.Left == 0 {
		t.Errorf("%+v, %v, want some that were left", s, err)
	}
	if alive(t, cmd.Dir, "life") {
		t.Error("the daemon lives")
	}
	if zombies := adoptedZombies(t); zombies != "" {
		t.Errorf("not reaped: %s", zombies)
	}
}

// A daemon that hides everything may be of any program that is older than it, so the last of those ends it.
func TestHostLeavesAHiddenDaemonToTheLastThatMayOwnIt(t *testing.T) {
	h := executor.NewHost(executor.HostOptions{})
	server := executortest.Shell(t, "exec sleep 1000")
	server.Grace = 50 * time.Millisecond
	p, err := h.Start(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	cmd := lasting(t, hidden)
	if _, err := executor.Run(t.Context(), h, cmd); err != nil {
		t.Fatal(err)
	}
	if !alive(t, cmd.Dir, "life") {
		t.Error("a daemon was ended that the server may have started")
	}
	if _, err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if alive(t, cmd.Dir, "life") {
		t.Error("the daemon lives on after all that may have started it")
	}
}

// A program may make its starter the parent of what it starts, which then is no orphan and has no mark either.
func TestHostFindsSiblingsOfAProgram(t *testing.T) {
	h := executor.NewHost(executor.HostOptions{})
	cmd := lasting(t, "")
	cmd.Argv, cmd.Env = []string{os.Args[0]}, append(os.Environ(), siblingEnv+"="+cmd.Dir)
	s, err := executor.Run(t.Context(), h, cmd)
	if err != nil || !s.OK() || s.Left != 1 {
		t.Errorf("%+v, %v, want one that was left", s, err)
	}
	if alive(t, cmd.Dir, "life") {
		t.Error("the sibling lives")
	}
}

// haveSibling starts a process as a child of this one's parent, in a session of its own.
func haveSibling(dir string) {
	life, err := os.OpenFile(filepath.Join(dir, "life"), os.O_RDWR, 0)
	if err == nil {
		attr := &os.ProcAttr{Dir: dir, Env: []string{}, Files: []*os.File{life},
			Sys: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_PARENT, Setsid: true}}
		_, err = os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, attr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// The host neither ends nor reaps processes that other code of this process started.
func TestHostLeavesOtherChildrenAlone(t *testing.T) {
	other := exec.Command("sleep", "1000")
	other.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	quick := exec.Command("sh", "-c", "exit 3")
	h := executor.NewHost(executor.HostOptions{})
	if err := errors.Join(other.Start(), quick.Start()); err != nil {
		t.Fatal(err)
	}
	cmd := lasting(t, hidden)
	if _, err := executor.Run(t.Context(), h, cmd); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := quick.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("its status was taken: %v", err)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("it was ended: %v", err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = other.Wait() // killed
	next := executortest.Shell(t, "true")
	next.Grace = 50 * time.Millisecond
	if _, err := executor.Run(t.Context(), h, next); err != nil {
		t.Fatal(err)
	}
	if alive(t, cmd.Dir, "life") {
		t.Error("the daemon lives on after all that may have started it")
	}
}

// A child that was there before, as in "server & exec benchgraph", is not the host's to end.
func TestHostLeavesInheritedChildrenAlone(t *testing.T) {
	dir := t.TempDir()
	mkfifo(t, filepath.Join(dir, "life"))
	mkfifo(t, filepath.Join(dir, "other"))
	shell := exec.Command("sh", "-euc", `(exec 9<>life; exec sleep 1000) & echo $! >pids
		setsid sh -c 'exec 9<>other; : >ready; exec sleep 1000' & echo $! >>pids
		while ! [ -e ready ]; do sleep 0.01; done
		exec "$0"`, os.Args[0])
	shell.Dir = dir
	shell.Env = append(os.Environ(), inheritEnv+"="+dir)
	shell.Stderr = os.Stderr
	if err := shell.Run(); err != nil {
		t.Fatal(err)
	}
	if !alive(t, dir, "life") || !alive(t, dir, "other") {
		t.Error("an inherited child was ended")
	}
	pids, err := os.ReadFile(filepath.Join(dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	for pid := range strings.FieldsSeq(string(pids)) {
		if err := exec.Command("kill", "-KILL", pid).Run(); err != nil {
			t.Error(err)
		}
	}
}

// beHeir runs one program as a benchgraph that a shell with children has turned into.
func beHeir(dir string) {
	h := executor.NewHost(executor.HostOptions{})
	s, err := executor.Run(context.Background(), h, executor.Command{Argv: []string{"/bin/sh", "-c", "exit 0"},
		Dir: dir})
	if err != nil || !s.OK() || s.Left != 0 {
		fmt.Fprintln(os.Stderr, s, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// adoptedZombies lists the zombies whose parent is this process.
func adoptedZombies(t *testing.T) string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		rest := string(text[bytes.LastIndexByte(text, ')')+1:])
		if strings.HasPrefix(rest, fmt.Sprintf(" Z %d ", os.Getpid())) {
			found = append(found, strings.TrimSpace(string(text)))
		}
	}
	return strings.Join(found, "\n")
}

// A server that hands itself on to a new process all the time is caught, too.
func TestHostEndsForkingPrograms(t *testing.T) {
	h := executor.NewHost(executor.HostOptions{})
	cmd := lasting(t,
		`trap '' TERM; for i in 1 2 3 4; do (while :; do (setsid sleep 0.03 &) ; sleep 0.01; done) & done; sleep 0.1`)
	s, err := executor.Run(t.Context(), h, cmd)
	if err != nil || !s.OK() || s.Left < 4 {
		t.Errorf("%+v, %v", s, err)
	}
	if alive(t, cmd.Dir, "life") {
		t.Error("something lives")
	}
}

// The test itself takes the pipe of the program's output, as a daemon that is no descendant could.
func TestHostDoesNotWaitForAForeignHolderOfTheOutput(t *testing.T) {
	h := executor.NewHost(executor.HostOptions{})
	var out bytes.Buffer
	cmd := executortest.Shell(t, "echo $$ >pid.new; mv pid.new pid; echo line; while ! [ -e go ]; do sleep 0.01; done")
	cmd.Stdout = &out
	p, err := h.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(exists(filepath.Join(cmd.Dir, "pid")))
	pid, err := os.ReadFile(filepath.Join(cmd.Dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(fmt.Sprintf("/proc/%s/fd/1", bytes.TrimSpace(pid)), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if err := os.WriteFile(filepath.Join(cmd.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := p.Wait(t.Context()); err != nil || !s.OK() || out.String() != "line\n" {
		t.Errorf("%+v, %v, %q", s, err, &out)
	}
}

func TestHostKeepsNoOutput(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 1 GB")
	}
	h := executor.NewHost(executor.HostOptions{})
	cmd := executortest.Shell(t, "head -c 1000000000 /dev/zero")
	cmd.Secrets = []string{"secret"}
	cmd.Stdout = io.Discard
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if s, err := executor.Run(t.Context(), h, cmd); err != nil || !s.OK() {
		t.Fatal(s, err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
}

// beOwner starts a program with a daemon as benchgraph would, and waits to be killed.
func beOwner(dir string) {
	h := executor.NewHost(executor.HostOptions{Owner: dir})
	_, err := h.Start(context.Background(), executor.Command{
		Argv: []string{"sh", "-euc",
			`exec 9<>program; (exec 9<>life; setsid sh -c 'trap "" TERM; exec 9<>life; : >ready; while :; do sleep 0.02; done' >/dev/null 2>&1 &)
			while :; do sleep 0.02; done`},
		Dir: dir,
		Env: []string{"PATH=/usr/bin:/bin"},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

func TestReapEndsProcessesOfAKilledOwner(t *testing.T) {
	dir := t.TempDir()
	mkfifo(t, filepath.Join(dir, "life"))
	mkfifo(t, filepath.Join(dir, "program"))
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerEnv+"="+dir)
	owner.Stderr = os.Stderr
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	waitUntil(exists(filepath.Join(dir, "ready")))
	reap := func(name string, want bool) {
		t.Helper()
		n, err := family.Reap(t.Context(), name)
		if err != nil || (n > 0) != want {
			t.Errorf("Reap: %d, %v", n, err)
		}
		if alive(t, dir, "life") == want {
			t.Errorf("the daemon lives: %v", !want)
		}
	}
	reap(dir, false) // its owner lives
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // killed
	// The kernel kills the program itself; only then is the pipe without a holder, and this loop ends.
	waitUntil(func() bool { return !alive(t, dir, "program") })
	reap(filepath.Join(dir, "other"), false)
	reap(dir, true)
	if n, err := family.Reap(t.Context(), dir); n != 0 || err != nil {
		t.Errorf("Reap with nothing left: %d, %v", n, err)
	}
}

func TestReapStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := family.Reap(ctx, t.TempDir()); n != 0 || err != nil {
		t.Errorf("with nothing to do: %d, %v", n, err)
	}
}
