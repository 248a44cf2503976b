//go:build linux && cgo

package clocks

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
	"github.com/benchgraph/benchgraph/device/gpu/nvmltest"
	"github.com/benchgraph/benchgraph/device/gpu/watch"
)

// clockWorld is two devices, and what locks their clocks.
type clockWorld struct {
	t       *testing.T
	play    func(string)
	library string
	driver  *gpu.Driver
	clocks  *Locker
	ended   int // how often a guard was told that there is nothing to do
}

func newClockWorld(t *testing.T, scene string, old bool) *clockWorld {
	w := &clockWorld{t: t}
	w.library, w.play = nvmltest.World(t, old)
	w.play(strings.Replace(scene, "limit=500", "limit=700", 1))
	w.driver = gpu.OpenDriver(t.Context(), gpu.Options{Library: w.library})
	t.Cleanup(w.driver.Close)
	w.clocks = &Locker{Driver: w.driver, Records: filepath.Join(t.TempDir(), "clocks"),
		Guard: func(record string, locks []*os.File) (func() error, error) {
			if text, err := os.ReadFile(record); err != nil || string(text) != "GPU-a\nGPU-b\n" || len(locks) != 2 {
				t.Errorf("the guard is given %d locks and a record of %q, %v", len(locks), text, err)
			}
			return func() error { w.ended++; return nil }, nil
		}}
	return w
}

// lock locks the clocks of both devices.
func (w *clockWorld) lock(mhz int) (*Locked, error) {
	w.t.Helper()
	var locks []*os.File
	for range 2 {
		f, err := os.CreateTemp(w.t.TempDir(), "")
		if err != nil {
			w.t.Fatal(err)
		}
		defer f.Close()
		locks = append(locks, f)
	}
	return w.clocks.Lock(w.t.Context(), w.driver.Devices(), locks, mhz)
}

// free leases a device that nobody else has leased.
func free(string) (release func(), err error) { return func() {}, nil }

// told is what was locked and reset.
func (w *clockWorld) told() string {
	text, err := os.ReadFile(os.Getenv("NVML_SCENARIO") + ".clocks")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\n", "; ")
}

func (w *clockWorld) records() int {
	files, err := os.ReadDir(w.clocks.Records)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return len(files)
}

func TestClocksAreLockedAndReset(t *testing.T) {
	w := newClockWorld(t, nvmltest.TwoH100, false)
	locked, err := w.lock(1200)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := w.driver.Read(w.driver.Devices()[1]); err != nil || *r.SMClock != 1200 || w.records() != 1 {
		t.Errorf("%+v, %v, %d records", r, err, w.records())
	}
	for range 2 {
		if err := locked.Reset(); err != nil {
			t.Error(err)
		}
	}
	if got, want := w.told(), "lock GPU-a 1200; lock GPU-b 1200; reset GPU-a; reset GPU-b; "; got != want {
		t.Errorf("told were %q, want %q", got, want)
	}
	if w.records() != 0 || w.ended != 1 {
		t.Errorf("%d records are left, the guard was ended %d times", w.records(), w.ended)
	}
}

func TestWhyClocksAreNotLocked(t *testing.T) {
	for name, test := range map[string]struct {
		from, to string // in the scene
		old      bool
		mhz      int
		want     string
		before   bool // it is known without trying
	}{
		"an old driver": {old: true, want: "too old", before: true},
		"too fast":      {mhz: 2100, want: "reaches 1980 MHz", before: true},
		"not root": {from: "mem=2619 slow=0x44", to: "lock=4 reset=4 slow=0x44",
			want: "device 1: only root"},
		"an old device": {from: "mem=2619 slow=0x44", to: "lock=3 reset=3 slow=0x44",
			want: "device 1: its clocks cannot be locked"},
		"no such clock": {from: "mem=2619 slow=0x0", to: "lock=2 reset=4 slow=0x0",
			want: "device 0: it has no such clock"},
		"it is said to be, but": {from: "sm=1410", to: "sm=1980 drift=1",
			want: "device 1: the driver locked the SM clock at 1200 MHz, and it is 1980 MHz"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newClockWorld(t, strings.Replace(nvmltest.TwoH100, test.from, test.to, 1), test.old)
			mhz := max(test.mhz, 1200)
			if known := w.driver.CannotLock(w.driver.Devices(), mhz); (known != "") != test.before {
				t.Errorf("known beforehand: %q", known)
			}
			_, err := w.lock(mhz)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
			told := w.told()
			if n, m := strings.Count(told, "lock"), strings.Count(told, "reset"); n != m || w.records() != 0 {
				t.Errorf("%q was told, %d records are left", told, w.records())
			}
		})
	}
	devices := gputest.Devices(2, "NVIDIA H100", 80<<30)
	d := gpu.DriverOf(devices, nil)
	d.Provider = gpu.ProviderNvidiaSMI
	if why := d.CannotLock(devices,
		1200); why != "the clocks of devices can only be locked through NVML, and this is nvidia-smi" {
		t.Error(why)
	}
	if d.LockClock(devices[0], 1200) == nil || d.ResetClock(devices[0].UUID) == nil {
		t.Error("a driver that cannot lock clocks has locked and reset one")
	}
	w := newClockWorld(t, strings.Replace(nvmltest.TwoH100, "ecc=0", "ecc=0 mig=1",
		1)+"part of=GPU-a uuid=MIG-1 name=NVIDIA_H100_MIG_3g.40gb mib=40448 used=0\n", false)
	if why := w.driver.CannotLock(w.driver.Devices()[:1], 1200); !strings.Contains(why, "partitioned") {
		t.Error(why)
	}
	if why := w.driver.CannotLock(w.driver.Devices(), 1200); why != "" {
		t.Errorf("one that is whole can be locked: %s", why)
	}
}

// The process that locked the clocks is killed: its guard resets them or, if the guard is killed as well, ResetLeft.
func TestResetLeftAfterAKill(t *testing.T) {
	w := newClockWorld(t, nvmltest.TwoH100, false)
	if _, err := w.lock(1200); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(w.clocks.Records, "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := Guard(t.Context(), strings.NewReader(""), files[0], w.library); err != nil || w.records() != 0 {
		t.Errorf("%v, %d records", err, w.records())
	}
	if err := Guard(t.Context(), strings.NewReader(""), files[0], "/nowhere.so"); err != nil {
		t.Errorf("without a record there is nothing to do: %v", err)
	}
	if left := ResetLeft(w.driver, w.clocks.Records, free); left != nil {
		t.Error(left)
	}
	if got := w.told(); got != "lock GPU-a 1200; lock GPU-b 1200; reset GPU-a; reset GPU-b; " {
		t.Error(got)
	}

	if _, err := w.lock(1300); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.clocks.Records, ".torn"), []byte("GPU-"), 0o600); err != nil {
		t.Fatal(err)
	}
	if left := ResetLeft(w.driver, w.clocks.Records, free); left != nil || w.records() != 0 {
		t.Errorf("%v, %d records", left, w.records())
	}
	if got := w.told(); !strings.HasSuffix(got, "lock GPU-b 1300; reset GPU-a; reset GPU-b; ") {
		t.Error(got)
	}
}

// A device whose clock stays locked is not granted, and its record stays for a later reset: otherwise a block would be
// measured at that clock unnoticed.
func TestLockedDevicesAreLeftOut(t *testing.T) {
	const fails = "mem=2619 slow=0x44"
	stuck := strings.Replace(nvmltest.TwoH100, fails, "reset=4 slow=0x44", 1)
	lock := func(t *testing.T) (*clockWorld, *Locked) {
		w := newClockWorld(t, nvmltest.TwoH100, false)
		locked, err := w.lock(1200)
		if err != nil {
			t.Fatal(err)
		}
		return w, locked
	}
	// left returns the indices of the devices that are left out.
	left := func(w *clockWorld) (indices []int) {
		for _, q := range w.driver.Quarantined() {
			if !q.Lasting || !strings.Contains(q.Why, "its clock is still locked: ") ||
				w.driver.Lost(w.driver.Devices()[q.Index]) != q.Why {
				w.t.Errorf("%+v, lost: %q", q, w.driver.Lost(w.driver.Devices()[q.Index]))
			}
			indices = append(indices, q.Index)
		}
		return indices
	}
	t.Run("after a block", func(t *testing.T) {
		w, locked := lock(t)
		w.play(stuck)
		if err := locked.Reset(); err == nil || !strings.Contains(err.Error(), "GPU-b: only root") {
			t.Error(err)
		}
		if got := left(w); !slices.Equal(got, []int{1}) || w.records() != 1 {
			t.Errorf("left out are %v, %d records", got, w.records())
		}
	})
	t.Run("by an earlier apply", func(t *testing.T) {
		w, _ := lock(t)
		w.play(stuck)
		errs := ResetLeft(w.driver, w.clocks.Records, free)
		if len(errs) != 1 || !strings.Contains(errs[0].Error(),
			"GPU-b: only root may lock the clocks of devices; apply as root, or") || w.records() != 1 {
			t.Errorf("%v, %d records", errs, w.records())
		}
		if got := left(w); !slices.Equal(got, []int{1}) {
			t.Errorf("left out are %v", got)
		}
	})
	t.Run("on devices that another one holds", func(t *testing.T) {
		w, _ := lock(t)
		leased := func(uuid string) (func(), error) { return nil, errors.New("it is leased") }
		if left := ResetLeft(w.driver, w.clocks.Records, leased); len(left) != 1 || w.records() != 1 {
			t.Errorf("%v, %d records", left, w.records())
		}
		if got := left(w); !slices.Equal(got, []int{0, 1}) {
			t.Errorf("left out are %v", got)
		}
	})
	t.Run("without NVML", func(t *testing.T) {
		w, _ := lock(t)
		devices := gputest.Devices(2, "NVIDIA H100", 80<<30)
		devices[1].UUID = "GPU-b"
		d := gpu.DriverOf(devices, nil)
		if errs := ResetLeft(d, w.clocks.Records, free); len(errs) != 1 || d.Lost(devices[1]) == "" ||
			d.Lost(devices[0]) != "" {
			t.Errorf("%v: %q, %q", errs, d.Lost(devices[0]), d.Lost(devices[1]))
		}
	})
	t.Run("not where nothing can be locked", func(t *testing.T) {
		w, locked := lock(t)
		w.play(strings.Replace(nvmltest.TwoH100, fails, "reset=3 slow=0x44", 1))
		if err := locked.Reset(); err != nil || left(w) != nil || w.records() != 0 {
			t.Errorf("%v, %d records", err, w.records())
		}
	})
}

func TestOffClock(t *testing.T) {
	clock := func(low, high float64) watch.Summary {
		return watch.Summary{UUID: "GPU-a", SMClock: &watch.Range{Min: low, Max: high}}
	}
	for _, test := range []struct {
		name    string
		s       watch.Summary
		problem string
		flags   int
	}{
		{"kept", clock(1395, 1410), "", 0},
		{"not told", watch.Summary{}, "", 0},
		{"idle at times", clock(210, 1410), "", 0},
		{"never so fast", clock(900, 1200), "", 1},
		{"reset by somebody", clock(1410, 1980), "GPU-a: SM clock of 1980 MHz, locked at 1410", 0},
	} {
		sums := []watch.Summary{test.s}
		if got := OffClock(sums, 1410); got != test.problem || len(sums[0].Flags) != test.flags {
			t.Errorf("%s: %q, %q", test.name, got, sums[0].Flags)
		}
	}
}
