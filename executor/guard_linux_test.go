package executor_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/executor"
)

// spying is a candidate without a sandbox that looks for the secret of the process that started it. Each line names
// what succeeds.
const spying = `
	try() { name=$1; shift; if timeout 5 "$@" </dev/null >/dev/null 2>&1; then echo "$name"; fi; }
	victim=$PPID
	try 'environment' grep -q victory /proc/$victim/environ
	try 'environment of a thread' sh -c "cat /proc/$victim/task/*/environ | grep -q victory"
	try 'descriptors' readlink /proc/$victim/fd/1
	try 'an open file' sh -c ": </proc/$victim/fd/0"
	try 'memory' dd if=/proc/$victim/mem of=/dev/null bs=1 count=1 skip=4194304
	try 'maps' cat /proc/$victim/maps
	try 'root directory' ls /proc/$victim/root/
	try 'any environment' sh -c 'cat /proc/[0-9]*/environ | grep -q victor[y]'
	try 'namespaces' nsenter --target $victim --mount true
	try "a tracer" timeout 1 strace -p $victim -o "$TMP/trace"
	try 'memory of the kernel' sh -c 'test -e /proc/kcore && timeout 2 dd if=/proc/kcore of=/dev/null bs=1 count=1'
	try 'a mount' mount -t tmpfs none /mnt
	try 'a device' mknod "$TMP/disk" b 8 0
	try 'a namespace of its own' unshare -r cat /proc/$victim/environ
	echo over`

// A guarded Host keeps its process from programs without a sandbox, also as root: a worker has the credentials of the
// shared store in its environment.
func TestACandidateWithoutASandboxDoesNotReadItsWorker(t *testing.T) {
	const secret = "BENCHGRAPH_TEST_SECRET"
	if os.Getenv(secret) == "" {
		t.Parallel()
		for _, guarded := range []string{"yes", "no"} { // in processes of their own, which stay guarded
			cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
			cmd.Env = append(os.Environ(), secret+"=victory", "GUARDED="+guarded)
			if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS")) {
				t.Errorf("guarded: %s: %v\n%s", guarded, err, out)
			}
		}
		return
	}
	h := executor.NewHost(executor.HostOptions{Guarded: os.Getenv("GUARDED") == "yes"})
	defer h.Close()
	var out bytes.Buffer
	status, err := executor.Run(t.Context(), h, executor.Command{Argv: []string{"sh", "-c", spying}, Dir: t.TempDir(),
		Env: []string{"PATH=" + os.Getenv("PATH"), "TMP=" + t.TempDir()}, Stdout: &out})
	switch {
	case err != nil || !status.OK():
		t.Fatalf("%+v, %v", status, err)
	case os.Getenv("GUARDED") == "yes" && out.String() != "over\n":
		t.Errorf("these succeed:\n%s", strings.TrimSuffix(out.String(), "over\n"))
	case os.Getenv("GUARDED") == "no" && !strings.HasPrefix(out.String(), "environment\n"):
		t.Errorf("the candidate finds nothing where it could:\n%s", out.String())
	}
	// Programs that this process starts otherwise are not hidden.
	if err := exec.Command("sh", "-c", "test -r /proc/self/environ").Run(); err != nil {
		t.Error(err)
	}
}
