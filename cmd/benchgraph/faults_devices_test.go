//go:build linux && faults

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu/nvmltest"
)

// playedDevices are eight devices that several benchgraph processes share: their environment, and a directory for the
// ledger.
func playedDevices(t *testing.T) (env []string, taken string) {
	t.Helper()
	library, err := nvmltest.Build(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	shared := t.TempDir()
	var scenario strings.Builder
	for i := range 8 {
		fmt.Fprintf(&scenario,
			"gpu uuid=GPU-%d name=NVIDIA_H100_80GB_HBM3 mib=81559 pci=00000000:%02d:00.0 temp=31 util=0\n", i, i)
	}
	file := filepath.Join(shared, "scenario")
	if err := os.WriteFile(file, []byte(scenario.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	taken = filepath.Join(shared, "taken")
	if err := os.Mkdir(taken, 0o755); err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(shared, "host.lock")
	return []string{"BENCHGRAPH_NVML=" + library, "NVML_SCENARIO=" + file, "BENCHGRAPH_HOST_LOCK=" + lock}, taken
}

// 180 nodes of three benchgraph processes ask for 1, 2, 4 or 8 of eight devices, and never get a device of another
// node.
func TestFaultDevicesOfThreeProcesses(t *testing.T) {
	const processes, nodes = 3, 60
	env, taken := playedDevices(t)
	var all sync.WaitGroup
	for i := range processes {
		w := newWorld(t, ledger(taken, nodes, []string{"1", "2", "4", "8"}, "0.02"))
		w.patience *= 4
		w.env = append(w.env, env...)
		all.Go(func() {
			o := w.finish(w.command("apply", "-parallelism=8", fmt.Sprintf("-var=of=%d", i)))
			if o.code != 0 || strings.Contains(o.stderr, "is taken") {
				t.Errorf("process %d: exit %d\n%s", i, o.code, o.stderr[max(0, len(o.stderr)-2000):])
			}
		})
	}
	all.Wait()
	if left, err := os.ReadDir(taken); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A node that asks for all eight devices does not wait for forty nodes of another process that ask for one each.
func TestFaultAWideNodeBesideManyNarrowOnes(t *testing.T) {
	env, taken := playedDevices(t)
	apply := func(nodes int, width string) *world {
		w := newWorld(t, ledger(taken, nodes, []string{width}, "1"))
		w.patience *= 4
		w.env = append(w.env, env...)
		return w
	}
	narrow, wide := apply(40, "1"), apply(1, "8")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if o := narrow.finish(narrow.command("apply", "-parallelism=8", "-var=of=1")); o.code != 0 {
			t.Errorf("exit %d\n%s", o.code, o.stderr[max(0, len(o.stderr)-2000):])
		}
	}()
	for {
		used, err := os.ReadDir(taken)
		if err != nil {
			t.Fatal(err)
		}
		if len(used) > 1 {
			break
		}
		select {
		case <-ended:
			t.Fatal("the narrow nodes never ran beside each other")
		case <-time.After(10 * time.Millisecond):
		}
	}
	begin := time.Now()
	if o := wide.finish(wide.command("apply", "-var=of=2")); o.code != 0 {
		t.Errorf("exit %d\n%s", o.code, o.stderr[max(0, len(o.stderr)-2000):])
	}
	t.Logf("the wide node was done after %s", time.Since(begin).Round(time.Second))
	select {
	case <-ended:
		t.Error("all narrow nodes came first")
	default:
		<-ended
		t.Logf("and the narrow ones after %s", time.Since(begin).Round(time.Second))
	}
}
