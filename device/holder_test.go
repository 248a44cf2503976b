package device_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
	"github.com/benchgraph/benchgraph/device/gpu/nvmltest"
	"github.com/benchgraph/benchgraph/device/hostlock"
)

// HolderOf returns the holder of a device and its node. It ignores the note of an earlier holder.
func TestHolderOf(t *testing.T) {
	host, locks := filepath.Join(t.TempDir(), "host.lock"), filepath.Join(t.TempDir(), "devices")
	for name, locks := range map[string]string{"of all users": locks, "of one's own": ""} {
		t.Run(name, func(t *testing.T) {
			o := device.Options{CPUs: 4, GPUs: gpu.These(gputest.Devices(2, "NVIDIA L4", 24*gib)), HostLock: host,
				GPULocks: locks}
			p := newPool(t, o)
			holder := func(i int) *hostlock.Holder {
				t.Helper()
				h, err := hostlock.HolderOf(o.GPUs()[i], host, locks)
				if err != nil {
					t.Fatal(err)
				}
				return h
			}
			if h := holder(0); h != nil {
				t.Errorf("before it is ever leased: %+v", h)
			}
			before := time.Now()
			one := must(t, p, device.Request{GPUs: device.GPUs{Count: 1}})
			if h := holder(0); h == nil || h.Node != "" || h.Since != nil {
				t.Errorf("leased for nothing in particular: %+v", h)
			}
			one.Name("trial.first")
			one.Name("trial.x")
			h := holder(0)
			if h == nil || h.PID != 0 && h.PID != os.Getpid() {
				t.Fatalf("%+v", h)
			}
			if h.PID == 0 {
				t.Skip("the kernel does not tell who holds a lock")
			}
			if h.Node != "trial.x" || h.User == "" || h.Program == "" || h.Since.Before(before) ||
				h.Since.After(time.Now()) {
				t.Errorf("%+v", h)
			}
			if text := h.String(); !strings.Contains(text, h.Program+" ") ||
				!strings.Contains(text, " of "+h.User+": trial.x, since ") {
				t.Errorf("%s", text)
			}
			if h := holder(1); h != nil {
				t.Errorf("the other one: %+v", h)
			}
			file := filepath.Join(locks, o.GPUs()[0].UUID)
			if locks == "" {
				file = host + "." + o.GPUs()[0].UUID
			}
			if err := os.WriteFile(file,
				[]byte(`{"pid":1,"node":"of an earlier holder","since":"2024-01-01T00:00:00Z"}`), 0); err != nil {
				t.Fatal(err)
			}
			if h := holder(0); h == nil || h.PID != os.Getpid() || h.Node != "" || h.Since != nil {
				t.Errorf("what another one noted is told of this one: %+v", h)
			}
			one.Release()
			if h := holder(0); h != nil {
				t.Errorf("after its release: %+v", h)
			}
		})
	}
}

// In a directory of all users anybody may give another file the name of a lock. Whoever leases the device leaves that
// file alone.
func TestALockThatIsALinkIsNotWrittenTo(t *testing.T) {
	host, locks := filepath.Join(t.TempDir(), "host.lock"), filepath.Join(t.TempDir(), "devices")
	o := device.Options{CPUs: 4, GPUs: gpu.These(gputest.Devices(1, "NVIDIA L4", 24*gib)), HostLock: host,
		GPULocks: locks}
	p := newPool(t, o)
	must(t, p, device.Request{GPUs: device.GPUs{Count: 1}}).Release() // which makes the directory
	if err := os.Remove(filepath.Join(locks, o.GPUs()[0].UUID)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "somebody's")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(file, filepath.Join(locks, o.GPUs()[0].UUID)); err != nil {
		t.Fatal(err)
	}
	one := must(t, p, device.Request{GPUs: device.GPUs{Count: 1}})
	one.Name("trial.x")
	if h, err := hostlock.HolderOf(o.GPUs()[0], host, locks); err != nil || h == nil || h.Node != "" {
		t.Errorf("held by %+v, %v", h, err)
	}
	one.Release()
	text, err := os.ReadFile(file)
	info, statErr := os.Stat(file)
	if err != nil || statErr != nil || string(text) != "precious" || info.Mode() != 0o600 {
		t.Errorf("the file has %q, %v, %v, %v", text, info.Mode(), err, statErr)
	}
}

// Where everybody can remove the locks of others, they are none.
func TestADirectoryOfLocksMustBeSticky(t *testing.T) {
	dir := t.TempDir()
	o := device.Options{CPUs: 4, GPUs: gpu.These(gputest.Devices(1, "NVIDIA L4", 24*gib)),
		HostLock: filepath.Join(dir, "host.lock"), GPULocks: filepath.Join(dir, "devices")}
	for _, test := range []struct {
		name string
		mode os.FileMode
		ok   bool
	}{{"open to all", 0o777, false}, {"sticky", 0o777 | os.ModeSticky, true}, {"one's own", 0o755, true}} {
		if err := os.MkdirAll(o.GPULocks, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(o.GPULocks, test.mode); err != nil {
			t.Fatal(err)
		}
		p, err := device.NewPool(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := hostlock.Check(o.GPULocks); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
		l, why := p.TryAcquire(device.Request{GPUs: device.GPUs{Count: 1}})
		if (why == nil) != test.ok || why != nil && (!why.Outside ||
			!strings.Contains(why.WaitsFor, "run chmod +t "+o.GPULocks)) {
			t.Errorf("%s: %+v", test.name, why)
		}
		if l != nil {
			l.Release()
		}
		if err := errors.Join(p.Fits(device.Request{CPUs: 1}), p.Close()); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// A device is leased beside all pools when the lease of another one has ended, and not before.
func TestLeaseOfOneDevice(t *testing.T) {
	host := filepath.Join(t.TempDir(), "host.lock")
	devices := gputest.Devices(2, "NVIDIA H100", 80<<30)
	pool, err := device.NewPool(device.Options{CPUs: 1, GPUs: gpu.These(devices), HostLock: host})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	l, refused := pool.TryAcquire(device.Request{GPUs: device.GPUs{Count: 2}})
	if refused != nil {
		t.Fatal(refused.WaitsFor)
	}
	var held atomic.Bool
	held.Store(true)
	time.AfterFunc(200*time.Millisecond, func() { held.Store(false); l.Release() })
	release, err := hostlock.Lease(devices[1].UUID, host, "")
	if err != nil || held.Load() {
		t.Fatalf("%v, still leased: %t", err, held.Load())
	}
	if _, refused := pool.TryAcquire(device.Request{GPUs: device.GPUs{Count: 2}}); refused == nil {
		t.Error("a device was leased twice")
	}
	release()
	if l, refused := pool.TryAcquire(device.Request{GPUs: device.GPUs{Count: 2}}); refused != nil {
		t.Error(refused.WaitsFor)
	} else {
		l.Release()
	}
}

// A pool opens no driver for a node that needs no device: the driver of this test hangs.
func TestNoDeviceNoDriver(t *testing.T) {
	library, play := nvmltest.World(t, false)
	play("system driver=550.54.15 hang=1\n")
	driver := gpu.NewDriver(t.Context(), gpu.Options{Library: library})
	pool, err := device.NewPool(device.Options{CPUs: 1, GPUs: driver.Devices})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	l, why := pool.TryAcquire(device.Request{CPUs: 1})
	if why != nil || time.Since(begun) > 10*time.Second {
		t.Errorf("%+v after %s", why, time.Since(begun))
	}
	l.Release()
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
}
