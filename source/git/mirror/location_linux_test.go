package mirror

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/benchgraph/benchgraph/executor"
)

// A repository that its owner keeps to himself is one, though git says that it is none.
func TestRepositoryThatMayNotBeRead(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can look as another user")
	}
	dir := filepath.Join(t.TempDir(), "r")
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Chmod(filepath.Join(dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{dir, filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))} { // all are this test's own
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m := &Mirror{location: dir, Shown: dir}
	m.Git.Exec, m.Git.Env = executor.NewHost(executor.HostOptions{Owner: "a test"}), os.Environ()
	runtime.LockOSThread() // for good: no other test gets this thread
	if err := syscall.Setfsuid(4711); err != nil {
		t.Fatal(err)
	}
	_, err := m.inspect(t.Context())
	if err := syscall.Setfsuid(0); err != nil {
		t.Fatal(err)
	}
	if err == nil || !strings.Contains(err.Error(), "you may not read it") {
		t.Error(err)
	}
}
