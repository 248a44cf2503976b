package workdir

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
)

// What a command mounted in $OUT, or on it, is no result. The test runs in a mount namespace of its own.
func TestMountsAreNoResult(t *testing.T) {
	dir := os.Getenv("BENCHGRAPH_TEST_APART")
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "BENCHGRAPH_TEST_APART="+t.TempDir())
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, fs.ErrPermission) {
			t.Skipf("no mount namespace can be made here: %v", err)
		}
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	for _, below := range []string{"", "/some dir"} {
		made, kept := filepath.Join(dir, "made"), filepath.Join(dir, "kept")
		for _, d := range []string{made + below, kept + below} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount("none", d, "tmpfs", 0, ""); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(d, "file"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		env := &engine.Env{Out: kept, Log: io.Discard, Emit: func(engine.Event) {}}
		for _, patterns := range [][]string{nil, {"**"}} {
			err := Keep(t.Context(), env, made, patterns, nil)
			f, ok := errors.AsType[*engine.Failure](err)
			if !ok || f.Rule != "mount_point" || f.Class != cache.Invalid || !strings.Contains(f.Message, "$OUT"+below+" is a mount point") {
				t.Errorf("%q, %v: %v", below, patterns, err)
			}
		}
		for _, d := range []string{made + below, kept + below} {
			if err := unix.Unmount(d, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}
