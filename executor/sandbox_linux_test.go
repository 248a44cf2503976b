package executor_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-version"
	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/executortest"
)

// sandboxes runs every command of a suite in a sandbox.
type sandboxes struct{ *executor.Host }

func (s sandboxes) Start(ctx context.Context, cmd executor.Command) (executor.Process, error) {
	cmd.Sandbox = &executor.Sandbox{}
	return s.Host.Start(ctx, cmd)
}

// needSandbox skips a test where the machine makes none.
func needSandbox(t testing.TB) {
	if err := executor.CheckSandbox(); err != nil {
		t.Skip(err)
	}
}

func TestSandboxPassesTheSuite(t *testing.T) {
	needSandbox(t)
	executortest.Run(t, executortest.Traits{Adds: []string{"HOME"}}, func(t *testing.T) executor.Executor {
		return sandboxes{executor.NewHost(executor.HostOptions{Owner: t.TempDir()})}
	})
}

// inSandbox runs a script, and returns what it printed.
func inSandbox(t *testing.T, o executor.Sandbox, script string, env ...string) string {
	t.Helper()
	return inSandboxOf(t, executor.NewHost(executor.HostOptions{}), o, script, env...)
}

func inSandboxOf(t *testing.T, h *executor.Host, o executor.Sandbox, script string, env ...string) string {
	t.Helper()
	needSandbox(t)
	cmd := executortest.Shell(t, script)
	cmd.Env = append(cmd.Env, env...)
	cmd.Sandbox = &o
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	s, err := executor.Run(t.Context(), h, cmd)
	if err != nil || !s.OK() {
		t.Fatalf("%+v, %v\n%s", s, err, &out)
	}
	return out.String()
}

// outside returns a directory outside of those that every sandbox hides.
func outside(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var", "benchgraph-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestASandboxShowsOnlyItsMounts(t *testing.T) {
	project, input, home := t.TempDir(), t.TempDir(), t.TempDir()
	secret, missing := filepath.Join(outside(t), "key"), filepath.Join(project, "missing")
	for _, name := range []string{filepath.Join(project, "file"), filepath.Join(input, "file"),
		filepath.Join(home, ".netrc"), secret} {
		if err := os.WriteFile(name, []byte("of the host\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	hidden := []string{project, secret, missing}
	out := inSandbox(t, executor.Sandbox{Hidden: hidden, Tmp: t.TempDir(), Home: t.TempDir(),
		Shown: []executor.Mount{{Host: input}}}, `
		cat "$INPUT/file"
		ls -A "$PROJECT" 2>/dev/null || echo no project
		if cat "$SECRET"; then echo read the secret; fi 2>/dev/null
		ls -A "$HOME" /home /root /run /dev/shm
		if (echo x >"$INPUT/file") 2>/dev/null; then echo input written; fi
		for dir in / /etc /usr /var /home /run /dev /proc/sys/kernel /sys; do if (: >$dir/benchgraph-test) 2>/dev/null; then echo wrote into $dir; fi; done
		echo own >"$HOME/x"; echo own >/tmp/x; echo own >/dev/shm/x; echo own >x
		set -- /proc/[0-9]*; test $# -eq 2 || echo "sees $# processes"
		grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs)' /proc/self/status | tr -d '\t'
		ls /sys/class/net >/dev/null; cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '`,
		"PROJECT="+project, "INPUT="+input, "HOME="+home, "SECRET="+secret)
	want := `of the host
no project
/dev/shm:

/home:

/root:

/run:

` + home + `:
CapInh:0000000000000000
CapPrm:0000000000000000
CapEff:0000000000000000
CapBnd:0000000000000000
CapAmb:0000000000000000
NoNewPrivs:1
lo
`
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	for _, dir := range []string{home, input} {
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			t.Errorf("%s: %v, %v", dir, files, err)
		}
	}
}

func TestASandboxGivesNoPrivilegesBack(t *testing.T) {
	out := inSandbox(t, executor.Sandbox{}, `
		mkdir sub
		mount --bind /usr sub 2>/dev/null && echo mounted
		mount -t tmpfs none "$PWD" 2>/dev/null && echo mounted a tmpfs
		unshare -Ur true 2>/dev/null && echo another namespace
		mount -o remount,rw / 2>/dev/null && echo remounted
		umount /tmp 2>/dev/null && echo unmounted
		mknod null c 1 3 2>/dev/null && echo made a device
		for f in environ fd/3 mem root; do cat /proc/1/$f >/dev/null 2>&1 && echo read $f of the first process; done
		for sig in HUP INT QUIT ABRT TERM USR1 SEGV STOP KILL; do kill -$sig 1 || :; done
		sleep 0.02
		echo alive`)
	if out != "alive\n" {
		t.Errorf("got %q", out)
	}
}

// A fork bomb that leaves its session and its environment is over when the command is.
func TestASandboxEndsForkingPrograms(t *testing.T) {
	needSandbox(t)
	cmd := lasting(t,
		`(env -i setsid sh -c 'ulimit -u 2000; trap "" TERM; : >ready; while :; do (sleep 0.02 & exit) & wait; done' >/dev/null 2>&1 &)
		while ! [ -e ready ]; do sleep 0.01; done`)
	cmd.Sandbox = &executor.Sandbox{}
	s, err := executor.Run(t.Context(), executor.NewHost(executor.HostOptions{}), cmd)
	if err != nil || !s.OK() || s.Left == 0 {
		t.Errorf("%+v, %v, want some that were left", s, err)
	}
	if alive(t, cmd.Dir, "life") {
		t.Error("it forks on")
	}
}

// Files in memory are removed before the end of their command is reported: the next command may be measured.
func TestASandboxEndsWithTheMemoryThatItHolds(t *testing.T) {
	needSandbox(t)
	cmd := executortest.Shell(t, `readlink /proc/self/ns/mnt >ready; while test -e ready; do sleep 0.01; done
		head -c 500000000 /dev/zero >/dev/shm/file`)
	cmd.Sandbox = &executor.Sandbox{}
	p, err := executor.NewHost(executor.HostOptions{}).Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(cmd.Dir, "ready")
	var namespace string
	for !strings.HasPrefix(namespace, "mnt:") {
		time.Sleep(time.Millisecond)
		text, _ := os.ReadFile(ready)
		namespace = strings.TrimSpace(string(text))
	}
	var inside []string
	all, err := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if of, _ := os.Readlink(dir + "/ns/mnt"); of == namespace {
			inside = append(inside, dir)
		}
	}
	if err := errors.Join(err, os.Remove(ready)); err != nil || len(inside) < 2 {
		t.Fatal(inside, err)
	}
	if s, err := p.Wait(t.Context()); err != nil || !s.OK() {
		t.Fatal(s, err)
	}
	for _, dir := range inside {
		if _, err := os.Stat(dir); err == nil {
			t.Error(dir, "is still there")
		}
	}
}

// The bound is one of the sandbox: before Linux 6.14 it would be one of the machine, and there is none.
func TestASandboxBoundsItsProcesses(t *testing.T) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		t.Fatal(err)
	}
	if v := version.Must(version.NewVersion(strings.SplitN(unix.ByteSliceToString(name.Release[:]), "-",
		2)[0])); v.LessThan(version.Must(version.NewVersion("6.14"))) {
		t.Skipf("Linux %s bounds processes for the whole machine only", v)
	}
	before, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		t.Fatal(err)
	}
	defer executor.BoundProcesses(400)()
	out := inSandbox(t, executor.Sandbox{}, `
		(i=0; while [ $i -lt 500 ]; do sleep 100 & i=$((i+1)); done) 2>refused || echo refused
		set -- /proc/[0-9]*
		test $# -gt 300 && test $# -le 400 && echo bounded # numbers below 300 are the kernel's
		echo 99999 2>/dev/null >/proc/sys/kernel/pid_max || echo for good`)
	if out != "refused\nbounded\nfor good\n" {
		t.Errorf("got %q", out)
	}
	if after, err := os.ReadFile("/proc/sys/kernel/pid_max"); err != nil || string(after) != string(before) {
		t.Errorf("the machine's own bound is %s now, and was %s: %v", after, before, err)
	}
}

func TestServerAndClientOfASandboxShareALoopback(t *testing.T) {
	needSandbox(t)
	h := executor.NewHost(executor.HostOptions{})
	server := executortest.Shell(t, "echo x >/tmp/of-server; exec 3<>/dev/null; : >up; sleep 1000")
	server.Grace = 1
	server.Sandbox = &executor.Sandbox{}
	p, err := h.Start(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	var names [3]string
	for i, beside := range []executor.Process{p, p, nil} {
		var out bytes.Buffer
		cmd := executortest.Shell(t,
			"readlink /proc/self/ns/net; ls /tmp /proc/[0-9]*/cwd/up >seen 2>&1 || :; grep -e of-server -e cwd/up$ "+
				"seen || :; exit 7")
		cmd.Sandbox, cmd.Stdout, cmd.Stderr = &executor.Sandbox{Beside: beside}, &out, &out
		s, err := executor.Run(t.Context(), h, cmd)
		if err != nil || s.Code != 7 {
			t.Fatalf("%+v, %v: %s", s, err, &out)
		}
		names[i] = out.String()
		if strings.Count(names[i], "\n") != 1 {
			t.Errorf("it sees the server: %s", names[i])
		}
	}
	if names[0] != names[1] || names[0] == names[2] {
		t.Errorf("networks: %q", names)
	}
}
