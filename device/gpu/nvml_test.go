//go:build linux && cgo

package gpu

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu/link"
	"github.com/benchgraph/benchgraph/device/gpu/mps"
	"github.com/benchgraph/benchgraph/device/gpu/nvmltest"
	"github.com/benchgraph/benchgraph/device/process"
)

func TestNVMLListsDevices(t *testing.T) {
	library, play := nvmltest.World(t, false)
	play(nvmltest.TwoH100)
	d := OpenDriver(t.Context(), Options{Library: library})
	defer d.Close()
	if d.Provider != ProviderNVML || d.Reason != "" || d.Version != "550.54.15" || d.CUDA != "12.4" ||
		len(d.Devices()) != 2 {
		t.Fatalf("%+v", d)
	}
	a, b := d.Devices()[0], d.Devices()[1]
	want := Device{Index: 0, UUID: "GPU-a", Name: "NVIDIA H100 80GB HBM3", Memory: 81559 << 20, Used: 4 << 20,
		PCI: "00000000:18:00.0", NUMA: -1, PowerLimit: 700, Driver: "550.54.15", CUDA: "12.4", Brand: "nvidia"}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("%+v", a)
	}
	if l := d.Link(a, b); l != d.Link(b, a) || l.String() != "NV4" || l.PCIe != link.Node {
		t.Errorf("link %v, %+v", l, l)
	}
	r, err := d.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	if *r.Temperature != 83 || *r.Utilization != 97 || *r.Power != 499 || *r.PowerLimit != 500 || *r.SMClock != 1410 ||
		*r.MaxSMClock != 1980 || *r.Uncorrected != 2 || r.Used != 61000<<20 {
		t.Errorf("%+v", r)
	}
	if !slices.Equal(r.Slowdowns, []string{SlowThermal, SlowPowerCap}) || len(r.Processes) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestNVMLSeesTheWorldChange(t *testing.T) {
	library, play := nvmltest.World(t, false)
	play(nvmltest.TwoH100)
	d := OpenDriver(t.Context(), Options{Library: library})
	defer d.Close()
	d.Elsewhere = false // the library counts as we do
	play(nvmltest.TwoH100 + "process on=GPU-a pid=" + self() +
		" mib=1024\nprocess on=GPU-a pid=2147483647\nprocess on=GPU-b pid=1 mib=7\n")
	r, err := d.Read(d.Devices()[0])
	if err != nil || len(r.Processes) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	own, gone := r.Processes[0], r.Processes[1]
	if own.PID != os.Getpid() || own.Used != 1<<30 || own.User == "" ||
		!strings.HasPrefix("gpu.test", own.Name[:3]) {
		t.Errorf("own %+v", own)
	}
	if gone != (process.Process{PID: 2147483647}) {
		t.Errorf("a process of another PID namespace: %+v", gone)
	}
	play(strings.Replace(nvmltest.TwoH100, "ecc=0", "ecc=0 gone=15", 1))
	if _, err := d.Read(d.Devices()[0]); !errors.Is(err, ErrGone) ||
		!strings.Contains(err.Error(), "GPU-a (NVIDIA H100 80GB HBM3)") {
		t.Errorf("a device that fell off the bus: %v", err)
	}
	if _, err := d.Read(d.Devices()[1]); err != nil {
		t.Errorf("the other one: %v", err)
	}
	again := OpenDriver(t.Context(), Options{Library: library})
	defer again.Close()
	if len(again.Devices()) != 1 || again.Devices()[0].UUID != "GPU-b" || !strings.Contains(again.Reason, "device 0") {
		t.Errorf("opened again: %+v", again)
	}
}

func self() string {
	name, _ := os.Readlink("/proc/self")
	return name
}

// MPS shares devices among programs: its server on a device, its daemon, its clients and the mode that goes with it are
// told.
func TestMPSIsTold(t *testing.T) {
	library, play := nvmltest.World(t, false)
	dir := t.TempDir()
	start := func(name string) (pid string) {
		t.Helper()
		sleep, err := exec.LookPath("sleep")
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(sleep)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(filepath.Join(dir, name), "600")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		return strconv.Itoa(c.Process.Pid)
	}
	server, daemon := start("nvidia-cuda-mps-server"), start("nvidia-cuda-mps-control")
	file := filepath.Join(dir, "nvidia-cuda-mps-control.pid")
	look := func(world, pid string) (*Driver, []string) {
		t.Helper()
		play(world)
		if err := os.WriteFile(file, []byte(pid+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		d := OpenDriver(t.Context(), Options{Library: library, MPS: dir})
		t.Cleanup(d.Close)
		return d, Warnings(d.Devices())
	}
	d, told := look(strings.Replace(nvmltest.TwoH100, "ecc=0", "ecc=0 compute=3", 1)+"process on=GPU-b pid="+server+
		"\nclient on=GPU-b pid="+self()+" mib=7\n", daemon)
	for i, want := range []string{
		"devices 0, 1: an MPS daemon waits for programs, process " + daemon,
		"device 1: an MPS server runs on it, process " + server + " (nvidia-cuda-mps of ",
		"device 0: its compute mode is exclusive",
	} {
		if len(told) != 3 || !strings.HasPrefix(told[i], want) {
			t.Errorf("no %q in %q", want, told)
		}
	}
	d.Elsewhere = false
	r, err := d.Read(d.Devices()[1])
	if err != nil || !slices.ContainsFunc(r.Processes, func(p process.Process) bool {
		return p.PID == os.Getpid() && p.Used == 7<<20
	}) || len(r.Processes) != 2 {
		t.Errorf("a client of MPS is not among %+v, %v", r.Processes, err)
	}
	// A daemon that was killed leaves its files, and another program may have its number.
	if _, told := look(nvmltest.TwoH100, self()); len(told) != 0 {
		t.Errorf("without MPS: %q", told)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if warning := mps.Warning(dir); warning != "" {
		t.Error(warning)
	}
}

// An old driver lacks functions, and calling one would end the process.
func TestAnOldDriverIsAskedForLess(t *testing.T) {
	library, play := nvmltest.World(t, true)
	play(nvmltest.TwoH100 + "process on=GPU-a pid=77 mib=5\n")
	d := OpenDriver(t.Context(), Options{Library: library})
	defer d.Close()
	if d.Provider != ProviderNVML || len(d.Devices()) != 2 || d.CUDA != "" || d.Devices()[0].PowerLimit != 0 {
		t.Fatalf("%+v", d)
	}
	r, err := d.Read(d.Devices()[0])
	if err != nil || r.PowerLimit != nil || *r.Temperature != 31 || len(r.Processes) != 1 ||
		r.Processes[0].Used != 5<<20 {
		t.Errorf("%+v, %v", r, err)
	}
	if l := d.Link(d.Devices()[0], d.Devices()[1]); l.String() != "NODE" {
		t.Errorf("link %v", l)
	}
}

func TestInstancesOfAPartitionedDevice(t *testing.T) {
	library, play := nvmltest.World(t, false)
	partitioned := strings.Replace(nvmltest.TwoH100, "ecc=0", "ecc=0 mig=1", 1) +
		"part of=GPU-a uuid=MIG-1 name=NVIDIA_H100_MIG_3g.40gb mib=40448 used=0\npart of=GPU-a uuid=MIG-2 " +
		"name=NVIDIA_H100_MIG_1g.10gb mib=9984 used=1\n"
	play(partitioned)
	d := OpenDriver(t.Context(), Options{Library: library})
	defer d.Close()
	var names []string
	for _, dev := range d.Devices() {
		names = append(names, dev.UUID+" of "+dev.Parent)
	}
	if !slices.Equal(names, []string{"MIG-1 of GPU-a", "MIG-2 of GPU-a", "GPU-b of "}) {
		t.Fatalf("%q", names)
	}
	if r, err := d.Read(d.Devices()[1]); err != nil || r.Used != 1<<20 || r.Temperature != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if l := d.Link(d.Devices()[0], d.Devices()[1]); l != (link.Link{}) {
		t.Errorf("instances are linked: %v", l)
	}
	for _, dev := range d.Devices()[:2] {
		if _, err := d.Read(dev); err != nil {
			t.Fatal(err)
		}
	}
	play(partitioned + "xid on=GPU-a code=95\nxid on=GPU-b code=79\n")
	for _, dev := range d.Devices()[:2] {
		if r, err := d.Read(dev); err != nil || !slices.Equal(r.Xids, []uint64{95}) {
			t.Errorf("%s: %v, %v", dev.UUID, r.Xids, err)
		}
	}
}

// A partitioned device without an instance serves nobody, and is named.
func TestAPartitionedDeviceWithoutAnInstance(t *testing.T) {
	library, play := nvmltest.World(t, false)
	alone := strings.Replace(nvmltest.TwoH100, "ecc=0", "ecc=0 mig=1", 1)
	for name, tt := range map[string]struct{ parts, says string }{
		"none":     {"", "device 0: it is in MIG mode without an instance.*nvidia-smi mig -i 0 -cgi PROFILE -C"},
		"one lost": {"part of=GPU-a uuid=MIG-1 name=x gone=15\n", "device 0: its instance 0: .*the device is gone"},
	} {
		play(alone + tt.parts)
		d := OpenDriver(t.Context(), Options{Library: library})
		if len(d.Devices()) != 1 || d.Devices()[0].UUID != "GPU-b" || len(d.Odd) != 1 ||
			!regexp.MustCompile(tt.says).MatchString(d.Odd[0]) || d.Reason != d.Odd[0] {
			t.Errorf("%s: %+v", name, d.answer)
		}
		d.Close()
	}
}

func TestDevicesBehindASwitch(t *testing.T) {
	library, play := nvmltest.World(t, false)
	var text bytes.Buffer
	for _, name := range []string{"a", "b", "c"} {
		text.WriteString("gpu uuid=GPU-" + name + " name=NVIDIA_H200 mib=143771 pci=00000000:0" + name + ":00.0\n")
	}
	text.WriteString("nvlink from=GPU-a to=00000000:f0:00.0 n=18\nnvlink from=GPU-b to=00000000:f0:00.0 n=18\n")
	play(text.String())
	d := OpenDriver(t.Context(), Options{Library: library})
	defer d.Close()
	a, b, c := d.Devices()[0], d.Devices()[1], d.Devices()[2]
	if d.Link(a, b).String() != "NV18" || d.Link(a, c).NVLinks != 0 || d.Link(a, b).Compare(d.Link(b, c)) <= 0 {
		t.Errorf("%v %v %v", d.Link(a, b), d.Link(a, c), d.Link(b, c))
	}
}

func TestWhyNVMLDoesNotAnswer(t *testing.T) {
	t.Setenv("PATH", t.TempDir()+":"+os.Getenv("PATH"))
	library, play := nvmltest.World(t, false)
	t.Setenv("PATH", t.TempDir())
	for init, want := range map[string]string{"9": "modprobe", "18": "reload", "999": "NVML error 999"} {
		play("system init=" + init + "\n")
		if d := OpenDriver(t.Context(), Options{Library: library}); d.Provider != ProviderNone ||
			!strings.Contains(d.Reason, want) || !strings.Contains(d.Reason, "nvidia-smi") || len(d.Odd) != 1 {
			t.Errorf("init %s: %+v", init, d)
		}
	}
	if d := OpenDriver(t.Context(), Options{Library: "/nowhere/libnvidia-ml.so.1"}); d.Provider != ProviderNone ||
		!strings.Contains(d.Reason, "no NVIDIA driver") || d.Odd != nil { // it is usual, and no warning
		t.Errorf("%+v", d)
	}
}

// A call that never returns is the commonest fault of a driver. The device that hangs is left out, and a driver that
// hangs as a whole is none.
func TestADriverThatHangsKeepsNobodyWaiting(t *testing.T) {
	const patience = 200 * time.Millisecond
	library, play := nvmltest.World(t, false)
	play(strings.Replace(nvmltest.TwoH100, "gpu uuid=GPU-a", "gpu hang=1 uuid=GPU-a", 1))
	d := OpenDriver(t.Context(), Options{Library: library, Patience: patience})
	if len(d.Devices()) != 1 || d.Devices()[0].UUID != "GPU-b" ||
		d.Reason != "device 0: the driver has not answered for 20s" {
		t.Errorf("one device hangs: %+v", d.answer)
	}
	if r, err := d.Read(d.Devices()[0]); err != nil || r.Used == 0 {
		t.Errorf("the other one: %+v, %v", r, err)
	}
	d.Close()

	t.Setenv("PATH", t.TempDir())
	play("system driver=550.54.15 hang=1\n")
	d = OpenDriver(t.Context(), Options{Library: library, Patience: patience})
	if d.Provider != ProviderNone || !strings.Contains(d.Reason,
		"NVML: the driver has not answered for 20s; nvidia-smi") {
		t.Errorf("all hangs: %+v", d.answer)
	}
	d.Close()

	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("a signal")) })
	if d := OpenDriver(ctx, Options{Library: library}); !strings.Contains(d.Reason, "NVML: a signal") {
		t.Errorf("a signal comes: %+v", d.answer)
	}
}

// While the events of one device hang, another one is read; and a shutdown that hangs ends the wait for it.
func TestEventsAndShutdownThatHangDelayNothing(t *testing.T) {
	library, play := nvmltest.World(t, false)
	world := strings.Replace(nvmltest.TwoH100, "gpu uuid=GPU-a", "gpu deaf=1 uuid=GPU-a", 1)
	play(world)
	d := OpenDriver(t.Context(), Options{Library: library})
	go func() { _, _ = d.Read(d.Devices()[0]) }()
	read := make(chan error, 1)
	time.Sleep(200 * time.Millisecond)
	go func() {
		_, err := d.Read(d.Devices()[1])
		read <- err
	}()
	select {
	case err := <-read:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the other device waits")
	}
	play(strings.Replace(nvmltest.TwoH100, "system", "system stuck=1", 1))
	closed := make(chan struct{})
	go func() {
		OpenDriver(context.Background(), Options{Library: library}).Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("the shutdown is waited for")
	}
}

func TestCriticalErrorsAreToldOnce(t *testing.T) {
	library, play := nvmltest.World(t, false)
	play(nvmltest.TwoH100)
	d := OpenDriver(t.Context(), Options{Library: library})
	defer d.Close()
	read := func() []uint64 {
		r, err := d.Read(d.Devices()[0])
		if err != nil {
			t.Fatal(err)
		}
		return r.Xids
	}
	if xids := read(); len(xids) != 0 {
		t.Errorf("%v", xids)
	}
	play(nvmltest.TwoH100 + "xid on=GPU-b code=31\nxid on=GPU-a code=79\nxid on=GPU-a code=48\n")
	if xids := read(); !slices.Equal(xids, []uint64{79, 48}) {
		t.Errorf("%v", xids)
	}
	if xids := read(); len(xids) != 0 {
		t.Errorf("told again: %v", xids)
	}
}
