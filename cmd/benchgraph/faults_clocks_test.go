//go:build linux && faults

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu/nvmltest"
)

// Each block but the last runs until it is killed, on a device whose clock it locks.
const lockedClocks = `
benchgraph { sandbox = "none" }
variable "for" { type = string }
benchmark "locked" {
  command = "touch ${var.for}; test ${var.for} = last || sleep 600; echo 'work done: 7 items/s'"
  gpus {
    count    = 2
    sm_clock = "1410MHz"
  }
  design { samples = 1 }
  metrics {
    metric "items" { match = "work done: ([0-9.]+)" }
  }
}
`

// guards are the processes that guard the clocks of a world.
func (w *world) guards() (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		text, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if args := strings.Split(string(text), "\x00"); len(args) > 3 && args[1] == guardCommand &&
			strings.HasPrefix(args[2], w.dir) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			pids = append(pids, pid)
		}
	}
	return pids
}

func (w *world) await(what string, holds func() bool) {
	w.t.Helper()
	for end := time.Now().Add(w.patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// A killed apply leaves no clock locked: the guard resets the clocks before others can have the devices, or, if the
// guard was killed as well, the next apply does.
func TestFaultLockedClocksOfAKilledApply(t *testing.T) {
	library, err := nvmltest.Build(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, lockedClocks)
	scene := ""
	for _, d := range []string{"a", "b"} {
		scene += fmt.Sprintf("gpu uuid=GPU-%s name=NVIDIA_H100_80GB_HBM3 mib=81559 pci=00000000:0%s:00.0 temp=31 "+
			"util=0 sm=1980 max=1980\n", d, d)
	}
	w.write("scenario", scene)
	w.env = append(w.env, "BENCHGRAPH_NVML="+library, "NVML_SCENARIO="+w.path("scenario"))
	locked, reset := "lock GPU-a 1410\nlock GPU-b 1410\n", "reset GPU-a\nreset GPU-b\n"
	told := func() string {
		text, _ := os.ReadFile(w.path("scenario.clocks"))
		return string(text)
	}
	start := func(name string) *exec.Cmd {
		cmd := w.command("apply", "-var", "for="+w.path(name))
		var log bytes.Buffer
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s: %s", name, &log)
			}
		})
		w.await("the clocks to be locked", func() bool { return exists(w.path(name)) })
		if guards := w.guards(); len(guards) != 1 {
			t.Fatalf("guards: %v", guards)
		}
		return cmd
	}
	kill := func(cmd *exec.Cmd) {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}

	kill(start("first"))
	w.await("the guard to end", func() bool { return len(w.guards()) == 0 })
	if got := told(); got != locked+reset {
		t.Fatalf("after the kill: %q", got)
	}

	// The guard is stopped: as long as it has not reset the clocks, nobody gets the devices.
	second := start("second")
	guard := w.guards()[0]
	if err := syscall.Kill(guard, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	kill(second)
	third := w.command("apply", "-var", "for="+w.path("third"))
	third.Env = append(third.Env, "BENCHGRAPH_STATE_DIR="+w.path("elsewhere"))
	log, err := os.Create(w.path("third.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	third.Stderr = log
	if err := third.Start(); err != nil {
		t.Fatal(err)
	}
	w.await("the devices to be waited for", func() bool {
		text, _ := os.ReadFile(log.Name())
		return bytes.Contains(text, []byte("leased by another benchgraph"))
	})
	if got := told(); got != locked+reset+locked {
		t.Fatalf("while the guard is held up: %q", got)
	}
	if err := syscall.Kill(guard, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.await("the clocks to be locked again", func() bool { return exists(w.path("third")) })
	if got := told(); got != strings.Repeat(locked+reset, 2)+locked {
		t.Fatalf("after the guard went on: %q", got)
	}

	// Both are killed, and the next apply finds the record.
	guard = w.guards()[0]
	if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	kill(third)
	if got := told(); got != strings.Repeat(locked+reset, 2)+locked {
		t.Fatalf("after both were killed: %q", got)
	}
	w.env = append(w.env, "BENCHGRAPH_STATE_DIR="+w.path("elsewhere"))
	w.must(0, "apply", "-var", "for=last")
	if got := told(); got != strings.Repeat(locked+reset, 4) {
		t.Errorf("in the end: %q", got)
	}
	if left, err := os.ReadDir(w.path("elsewhere", "clocks")); err != nil || len(left) > 0 || len(w.guards()) > 0 {
		t.Errorf("left: %v, %v, guards %v", left, err, w.guards())
	}
}
