package gpu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func TestNvidiaSMI(t *testing.T) {
	for _, test := range []struct {
		name, script string
		devices      int
		provider     string
		reason       string
	}{
		{"not installed", "", 0, "none", "not in PATH"},
		{"driver gone", "echo 'NVIDIA-SMI has failed because it could not communicate with the driver.'; exit 9", 0,
			"none", "could not communicate"},
		{"no device", "exit 0", 0, "none", "no device"},
		{"nonsense", "echo hello", 0, "none", "hello"},
		{"two",
			"case $1 in *driver_version) echo 550.1 && exit;; esac; echo '0, GPU-a, NVIDIA H100 80GB HBM3, 81559, " +
				"4'; echo '1, GPU-b, NVIDIA H100 80GB HBM3, 81559, [N/A]'", 2, "nvidia-smi", ""},
		{"partitioned", "case $1 in *driver_version) echo 550.1 && exit;; *mig*) echo 'GPU-a, Disabled'; echo " +
			"'GPU-b, Enabled'; exit;; esac; echo '0, GPU-a, NVIDIA H100 80GB HBM3, 81559, 4'; echo " +
			"'1, GPU-b, NVIDIA H100, 81559, 4'", 1, "nvidia-smi",
			"device 1 is in MIG mode, and only NVML tells of its instances: install libnvidia-ml.so.1"},
		{"all partitioned", "case $1 in *mig*) echo 'GPU-a, Enabled' && exit;; esac; echo '0, GPU-a, H100, 81559, 4'",
			0, "nvidia-smi", "device 0 is in MIG mode"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			if test.script != "" {
				if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+test.script+"\n"),
					0o755); err != nil {
					t.Fatal(err)
				}
			}
			d := OpenDriver(t.Context(), Options{Library: "/nowhere"})
			devices, provider, reason := d.Devices(), d.Provider, d.Reason
			if len(devices) != test.devices || provider != test.provider || !strings.Contains(reason, test.reason) ||
				(reason == "") != (test.reason == "") {
				t.Errorf("%+v, %q, %q", devices, provider, reason)
			}
			if test.devices > 0 && !reflect.DeepEqual(devices[0], Device{Index: 0, UUID: "GPU-a",
				Name: "NVIDIA H100 80GB HBM3", Memory: 81559 << 20, Used: 4 << 20, NUMA: -1, Driver: "550.1"}) {
				t.Errorf("%+v", devices[0])
			}
		})
	}
	for name, test := range map[string]struct {
		script string
		gone   bool
		want   string
	}{
		"an answer of another version": {"echo '4, 0, 30'", false,
			`nvidia-smi answers "4, 0, 30\n", which is not understood`},
		"another failure": {"echo 'Failed to initialize NVML' && exit 9", false,
			"Failed to initialize NVML"},
		"off the bus": {"echo 'Unable to determine the device handle: GPU is lost.' && exit 15", true,
			"GPU is lost"},
		"no longer there": {"echo 'No devices were found' && exit 6", true, "No devices were found"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir+":/usr/bin:/bin")
			script := "#!/bin/sh\ncase $* in *version*) echo 550.1;; *--id*) " + test.script +
				";; *) echo '0, GPU-a, NVIDIA H100, 81559, 4';; esac\n"
			if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			d := OpenDriver(t.Context(), Options{Library: "/nowhere"})
			defer d.Close()
			if _, err := d.Read(d.Devices()[0]); err == nil || errors.Is(err, ErrGone) != test.gone ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("closed while it hangs", func(t *testing.T) {
		dir := t.TempDir()
		t.Setenv("PATH", dir+":/usr/bin:/bin")
		const script = "case $* in *version*) echo 550.1;; *--id*) echo $$ >%[1]s/new; mv %[1]s/new %[1]s/pid; exec " +
			"sleep 1000;; *) echo '0, GPU-a, NVIDIA H100, 81559, 4';; esac"
		if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), fmt.Appendf(nil, "#!/bin/sh\n"+script+"\n", dir),
			0o755); err != nil {
			t.Fatal(err)
		}
		d := OpenDriver(t.Context(), Options{Library: "/nowhere"})
		if len(d.Devices()) != 1 {
			t.Fatalf("%+v", d)
		}
		failed := make(chan error)
		go func() { _, err := d.Read(d.Devices()[0]); failed <- err }()
		var text []byte
		for err := error(fs.ErrNotExist); err != nil; time.Sleep(time.Millisecond) {
			text, err = os.ReadFile(filepath.Join(dir, "pid"))
		}
		d.Close()
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err := errors.Join(err, unix.Kill(pid, 0)); !errors.Is(err, unix.ESRCH) {
			t.Errorf("it still runs: %v", err)
		}
		if err := <-failed; err == nil {
			t.Error("it answered")
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		dir := t.TempDir()
		t.Setenv("PATH", dir+":/usr/bin:/bin")
		if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\nexec sleep 1000\n"),
			0o755); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if d := OpenDriver(ctx, Options{Library: "/nowhere"}); d.Provider != ProviderNone ||
			!strings.Contains(d.Reason, "cancel") {
			t.Errorf("%+v", d)
		}
	})
}

func FuzzParseSMI(f *testing.F) {
	f.Add("0, GPU-a, NVIDIA H100 80GB HBM3, 81559, 4\n")
	f.Add("0, GPU-a, Some, odd, name, 1024, [N/A]\n\n")
	f.Add(", , , ,\n")
	f.Fuzz(func(t *testing.T, text string) {
		var devices []Device
		var err error
		fuzzing.Frugal(t, len(text), func() { devices, err = parseSMI(text) })
		for _, d := range devices {
			if d.UUID == "" || d.Index < 0 || d.Memory < 0 || d.Used < 0 || err != nil {
				t.Errorf("%+v, %v", d, err)
			}
		}
	})
}
