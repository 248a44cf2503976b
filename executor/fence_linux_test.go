package executor_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/executortest"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

// withoutNamespaces runs the test in a process that gets no namespace from the kernel any more. In the first process,
// withoutNamespaces returns false after the other one has passed, and the test must return.
func withoutNamespaces(t *testing.T) bool {
	t.Helper()
	if executor.LandlockVersion() == 0 {
		needtest.Missing(t, "this kernel does not speak Landlock")
	}
	if needtest.Apart(t) == "" {
		return false
	}
	// The setting is that of the namespace of this process.
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := executor.CheckSandbox(); err == nil || executor.SandboxOf() != executor.Landlock {
		t.Fatalf("%v, %s", err, executor.SandboxOf())
	}
	return true
}

func TestLandlockAlonePassesTheSuite(t *testing.T) {
	if withoutNamespaces(t) {
		executortest.Run(t, executortest.Traits{}, func(t *testing.T) executor.Executor {
			return sandboxes{executor.NewHost(executor.HostOptions{Owner: t.TempDir()})}
		})
	}
}

// Where the kernel makes no namespaces, a command writes to its own directories alone, reads neither the project nor a
// home, and reaches no other process and no port but its own.
func TestLandlockAloneKeepsACommandToItsOwn(t *testing.T) {
	if !withoutNamespaces(t) {
		return
	}
	project, input, out, home, tmp := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	elsewhere := outside(t)
	secret := filepath.Join(elsewhere, "file")
	for _, dir := range []string{project, input, elsewhere} {
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte("of the host\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	own, other := listener(t), listener(t)
	cmd := executortest.Shell(t, "")
	cmd.Argv = []string{"bash", "-euc", `
		cat "$INPUT/file"
		for path in "$PROJECT/file" "$SECRET" /proc/$PPID/environ; do
			if cat "$path" >/dev/null 2>&1; then echo "read $path"; fi
		done
		for dir in "$PROJECT" /home /root /run /tmp /dev/shm; do
			if ls "$dir" >/dev/null 2>&1; then echo "listed $dir"; fi
		done
		for dir in / /etc /tmp /var/tmp /dev/shm "$INPUT" "$PROJECT" /proc/sys/kernel; do
			if (: >"$dir/benchgraph-test") 2>/dev/null; then echo "wrote into $dir"; fi
		done
		if (: >>"$INPUT/file") 2>/dev/null; then echo "changed an input"; fi
		echo own >"$HOME/x"; echo own >"$TMPDIR/x"; echo own >"$OUT/x"; mkdir sub; echo own >sub/x; mv sub/x x; rm -r sub
		cat /etc/passwd /proc/self/status >/dev/null; ls /usr/bin >/dev/null; echo x >/dev/null
		kill -CONT $PPID 2>/dev/null && echo "sent a signal"
		sleep 100 & kill $!
		for port in $OWN $OTHER; do
			if (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null; then echo "connected to $port"; fi
		done
		grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\t'`}
	cmd.Env = append(cmd.Env, "SECRET="+secret, "PROJECT="+project, "INPUT="+input, "OUT="+out,
		fmt.Sprint("OWN=", own), fmt.Sprint("OTHER=", other))
	cmd.Sandbox = &executor.Sandbox{
		Hidden: []string{project, secret}, Tmp: tmp, Home: home, Ports: []int{own},
		Shown: []executor.Mount{{Host: input}, {Host: out, Writable: true}},
	}
	got := outputOf(t, cmd)
	want := fmt.Sprintf("of the host\nconnected to %d\nCapEff:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n", own)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, dir := range []string{home, tmp, out} {
		if text, err := os.ReadFile(filepath.Join(dir, "x")); string(text) != "own\n" {
			t.Errorf("%q, %v", text, err)
		}
	}
	cmd.Sandbox.Network = true
	if got := outputOf(t, cmd); !strings.Contains(got, fmt.Sprintf("connected to %d\n", other)) {
		t.Errorf("with a network: %s", got)
	}
}

// In a sandbox of namespaces, Landlock forbids nothing that a program needs, and keeps it from the abstract sockets of
// a network that it shares.
func TestLandlockIsTheSecondLine(t *testing.T) {
	if executor.LandlockVersion() == 0 {
		needtest.Missing(t, "this kernel does not speak Landlock")
	}
	out := inSandbox(t, executor.Sandbox{Network: true}, `
		echo x >x; mkdir sub; mv x sub/; ln sub/x y; rm -r sub y
		echo x >/tmp/x; echo x >/dev/shm/x; echo x >/dev/null; echo bash >/proc/self/comm
		{ sleep 100 & kill $!; wait $!; } 2>/dev/null || echo ended
		python3 -c '
import socket
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("\0'$NAME'")
    print("reached an abstract socket of the host")
except PermissionError:
    print("no abstract socket")
'`, "NAME="+abstract(t))
	if out != "ended\nno abstract socket\n" {
		t.Errorf("%q", out)
	}
}

// abstract listens on an abstract socket, and returns the name of that.
func abstract(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("benchgraph-test-%d", os.Getpid())
	l, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return name
}

// listener listens on a port of this machine.
func listener(t *testing.T) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// outputOf runs a command on the host, and returns what it printed.
func outputOf(t *testing.T, cmd executor.Command) string {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	s, err := executor.Run(t.Context(), executor.NewHost(executor.HostOptions{}), cmd)
	if err != nil || !s.OK() {
		t.Fatalf("%+v, %v\n%s", s, err, &out)
	}
	return out.String()
}
