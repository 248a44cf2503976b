//go:build linux && gpu

package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu/nvmltest"
)

//go:embed testdata/gpu/load.py
var gpuLoadPy []byte

//go:embed testdata/gpu/torch.py
var standInTorch []byte

// gpuStandIn plays a driver with two devices: its NVML is that of nvmltest, its libcuda and nvidia-smi are below
// testdata/gpu. A process that "uses" a device has a file in loads; the scenario is made anew from these files all the
// time.
type gpuStandIn struct {
	dir string
	smi string
	env []string

	silent atomic.Bool // processes are not told
	shift  int         // by which the numbers of processes differ from those here
}

const standInGPU = "gpu uuid=%[2]s name=Stand-in_H200 mib=143771 pci=00000000:%02[1]d:00.0 limit=700 temp=31 " +
	"max=1980 mem=3201 ecc=0 slow=0x0 "

var standInUUIDs = []string{"GPU-5d0f9b1c-7e4a-4a57-b7c5-0c9a4bb1d201", "GPU-9a1e33f2-11d0-4c39-8d3e-2f6b1f0aa7c4"}

func newGPUStandIn(t *testing.T) *gpuStandIn {
	t.Helper()
	s := &gpuStandIn{dir: t.TempDir()}
	switch *gpuRehearse {
	case "other":
		s.shift = 1 << 22 // more processes no machine has
	case "none":
		s.silent.Store(true)
	case "self":
	default:
		t.Fatalf("-gpu.rehearse=%s: it is self, other or none", *gpuRehearse)
	}
	library, err := nvmltest.Build(s.dir, false)
	if err != nil {
		t.Skipf("no rehearsal: %v", err)
	}
	out, err := exec.Command("cc", "-shared", "-fPIC", "-O1", "-o", filepath.Join(s.dir, "libcuda.so.1"),
		"testdata/gpu/cuda.c").CombinedOutput()
	if err != nil {
		t.Fatalf("libcuda's stand-in: %v\n%s", err, out)
	}
	s.smi = filepath.Join(s.dir, "nvidia-smi")
	s.write(t, "nvidia-smi", standInSMI(), 0o755)
	s.write(t, "torch.py", string(standInTorch), 0o644)
	s.write(t, "uuids", strings.Join(standInUUIDs, "\n"), 0o644)
	if err := os.Mkdir(filepath.Join(s.dir, "loads"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.env = []string{"BENCHGRAPH_NVML=" + library, "NVML_SCENARIO=" + filepath.Join(s.dir, "scenario"), "STAND_IN=" +
		s.dir, "LD_LIBRARY_PATH=" + s.dir, "PYTHONPATH=" + s.dir}
	s.play(t)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				s.play(t)
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
	return s
}

func (s *gpuStandIn) write(t *testing.T, name, text string, mode os.FileMode) {
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path+".new", []byte(text), mode); err != nil {
		t.Error(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Error(err)
	}
}

// play writes the present scenario.
func (s *gpuStandIn) play(t *testing.T) {
	used, users := map[string]int{}, ""
	loads, _ := filepath.Glob(filepath.Join(s.dir, "loads", "[0-9]*[0-9]"))
	for _, load := range loads {
		pid := filepath.Base(load)
		text, err := os.ReadFile(load)
		alive, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline")) // a zombie has none
		var uuid string
		var mib int
		if n, _ := fmt.Sscan(string(text), &uuid, &mib); err != nil || n != 2 || len(alive) == 0 {
			continue
		}
		used[uuid] += mib
		if number, err := strconv.Atoi(pid); err == nil && !s.silent.Load() {
			users += fmt.Sprintf("process on=%s pid=%d mib=%d\n", uuid, number+s.shift, mib)
		}
	}
	var b bytes.Buffer
	b.WriteString("system driver=550.54.15 cuda=12040\n")
	for i, uuid := range standInUUIDs {
		fmt.Fprintf(&b, standInGPU, i, uuid)
		if used[uuid] > 0 {
			fmt.Fprintf(&b, "used=%d util=97 power=600 sm=1980\n", used[uuid]+4)
		} else {
			fmt.Fprintf(&b, "used=4 util=0 power=70 sm=345\n")
		}
	}
	fmt.Fprintf(&b, "nvlink from=%s to=%s n=18\n%s", standInUUIDs[0], standInUUIDs[1], users)
	s.write(t, "scenario", b.String(), 0o644)
}

// standInSMI is an nvidia-smi that knows the two devices.
func standInSMI() string {
	var b strings.Builder
	b.WriteString(`#!/bin/sh
if [ "$1" = topo ]; then
  printf '\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-7\nGPU1\tNV18\t X \t0-7\n\nLegend:\n  X    = Self\n'
  exit
fi
if [ $# = 0 ]; then
  echo '| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4     |'
  exit
fi
for word; do
  case $word in --query-gpu=*) fields=${word#--query-gpu=} ;; esac
done
row() {
  line=
  for field in $(echo "$fields" | tr , ' '); do
    case $field in
    index) value=$1 ;;
    uuid) value=$2 ;;
    name) value="Stand-in H200" ;;
    memory.total) value=143771 ;;
    memory.used) value=4 ;;
    enforced.power.limit | power.limit) value=700.00 ;;
    driver_version) value=550.54.15 ;;
    mig.mode.current) value=Disabled ;;
    clocks.max.sm) value=1980 ;;
    pci.bus_id) value=00000000:0$1:00.0 ;;
    temperature.gpu) value=31 ;;
    ecc.errors.uncorrected.volatile.total) value=0 ;;
    *) value="[N/A]" ;;
    esac
    line="$line${line:+, }$value"
  done
  echo "$line"
}
`)
	for i, uuid := range standInUUIDs {
		fmt.Fprintf(&b, "row %d %s\n", i, uuid)
	}
	return b.String()
}
