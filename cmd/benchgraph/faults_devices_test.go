//go:build linux && faults

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/benchgraph/benchgraph/device/nvmltest"
)

// 500 nodes that want 1, 2, 4 or 8 of eight devices, in three benchgraphs at once, never get one that another has.
func TestFaultDevicesOfThreeProcesses(t *testing.T) {
	const processes, nodes = 3, 167
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
	taken := filepath.Join(shared, "taken")
	if err := os.Mkdir(taken, 0o755); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range processes {
		w := newWorld(t, ledger(taken, nodes, []string{"1", "2", "4", "8"}, "0.02"))
		w.patience *= 4
		w.env = append(w.env, "BENCHGRAPH_NVML="+library, "NVML_SCENARIO="+file,
			"BENCHGRAPH_HOST_LOCK="+filepath.Join(shared, "host.lock"))
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
