package machine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

const h100 = `{"index": 0, "uuid": "GPU-a", "name": "NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984, ` +
	`"power_limit_w": 700}`

func TestParseProfile(t *testing.T) {
	t.Parallel()
	p, err := machine.ParseProfile([]byte(`{"format": "1.7", "driver_version": "550.54.15", "new": [1],
		"devices": [` + h100 + `],
		"machine": {"os": "linux", "arch": "amd64", "cpu": "Xeon", "cores": 96,
			"memory_bytes": 1099511627776, "new": true}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := "1 × NVIDIA H100 80GB HBM3 79.65 GiB 700 W driver 550; Xeon, 96 cores, 1024 GiB, amd64"
	if got := p.String(); got != want {
		t.Error(got)
	}
	if !p.Is(p.Host.Class(), p.Devices) || p.Is(p.Host.Class(), nil) || p.Is(machine.Class{Cores: 1}, p.Devices) ||
		len(p.Lacks) > 0 {
		t.Errorf("%+v", p)
	}
	pool, err := device.PoolOf(p, "machine h100")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pool.Fits(device.Request{GPUs: device.GPUs{Count: 1, Memory: 80 << 30}}); err != nil {
		t.Error(err)
	}
	if err := pool.Fits(device.Request{GPUs: device.GPUs{Count: 2}, Memory: 1 << 41}); err == nil ||
		err.Error() != "needs 2 TiB of memory; machine h100 has 1 TiB\nneeds 2 devices; machine h100 has 1" {
		t.Error(err)
	}
	for document, want := range map[string]string{
		``:                                   "this is not what",
		`[]`:                                 "this is not what",
		`{"format": "1.0"}`:                  "this is not what",
		`{"devices": []}`:                    "this is not what",
		`{"format": 1, "devices": []}`:       "this is not what",
		`{"format": "2.0", "devices": []}`:   `its format is "2.0"`,
		`{"format": "1.0", "devices": [{}]}`: "device 0 has no name",
		`{"format": "1.0", "devices": [` + h100 + `,` + h100 +
			`]}`: "device 1 has no name, no memory or no UUID of its own",
		`{"format": "1.0", "devices": [` + strings.Repeat(`{},`, 2000) + `{}]}`: "it has 2001 devices",
		`{"format": "1.0", "devices": [], "machine": {"cores": 1}}`:             `its "machine" makes no sense`,
		strings.Repeat(" ", machine.MaxProfile+1):                               "larger than 2 MiB",
		`{"format": "1.0", "devices": [], ` +
			`"machine": {"os": "a b", "arch": "x", "cores": 1}}`: `its "machine" makes no sense`,
	} {
		if _, err := machine.ParseProfile([]byte(document)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", document, err, want)
		}
	}
}

// The profile of this machine equals what this machine reports.
func TestAProfileOfThisMachineIsThisMachine(t *testing.T) {
	t.Parallel()
	host, err := machine.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(map[string]any{"format": "1.0", "machine": host, "devices": []gpu.Device{}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := machine.ParseProfile(document)
	if err != nil {
		t.Fatal(err)
	}
	class, _, err := machine.Inventory(nil)
	if err != nil || !p.Is(class, nil) {
		t.Errorf("%v is not %v, %v", p, class, err)
	}
}

func FuzzParseProfile(f *testing.F) {
	seeds, _ := filepath.Glob("testdata/profiles/*.json")
	if len(seeds) == 0 {
		f.Fatal("no seeds")
	}
	for _, name := range seeds {
		seed, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		var p *machine.Profile
		var err error
		fuzzing.Frugal(t, len(document), func() { p, err = machine.ParseProfile(document) })
		if err != nil {
			return
		}
		pool, err := device.PoolOf(p, "x")
		if err != nil {
			t.Fatalf("a profile that was read makes no pool: %v", err)
		}
		defer pool.Close()
		all := device.Request{GPUs: device.GPUs{Count: len(p.Devices)}, Memory: p.Host.Memory}
		if err := pool.Fits(all); err != nil {
			t.Errorf("the machine does not have what it has: %v", err)
		}
	})
}
