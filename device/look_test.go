package device

import (
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
	"github.com/benchgraph/benchgraph/device/gpu/watch"
)

// play returns a driver of two devices that are as a function of the time says.
func play(at func(d gpu.Device, second int) (gpu.Reading, error)) (*gpu.Driver, []gpu.Device) {
	devices, begun := gputest.Devices(2, "NVIDIA H100", 80<<30), time.Now()
	return gpu.DriverOf(devices, func(d gpu.Device) (gpu.Reading, error) {
		return at(d, int(time.Since(begun)/time.Second))
	}), devices
}

// lookers are a pool, and a driver whose answers to a look come from a test.
func lookers(t *testing.T, at func(d gpu.Device, second int) (gpu.Reading, error)) (*LocalPool, *gpu.Driver) {
	t.Helper()
	d, devices := play(at)
	p, err := NewPool(Options{CPUs: 8, GPUs: gpu.These(devices), Ready: watch.Ready(d), Lost: d.Lost})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		d.Close()
	})
	return p, d
}

func devicesWanted(n int) Request { return Request{GPUs: GPUs{Count: n}} }

// Who asks is answered at once, however slow the driver is, and told when there is an answer. A look serves one grant,
// and when nobody asks nobody looks.
func TestASlowDriverKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 4 * time.Second
		var reads atomic.Int32
		pool, _ := lookers(t, func(gpu.Device, int) (gpu.Reading, error) {
			reads.Add(1)
			time.Sleep(slow)
			return gpu.Reading{}, nil
		})
		begun := time.Now()
		for range 3 {
			asked := time.Now()
			for range 5 { // the same question is no other look
				if l, why := pool.TryAcquire(devicesWanted(2)); l != nil || !why.Looking || why.Outside ||
					time.Since(asked) > 0 {
					t.Fatalf("after %s: %+v", time.Since(asked), why)
				}
			}
			_, why := pool.TryAcquire(devicesWanted(2))
			<-why.Changed
			l, why := settled(pool, devicesWanted(2))
			if why != nil || time.Since(asked) != slow {
				t.Fatalf("after %s: %+v", time.Since(asked), why)
			}
			l.Release()
		}
		if n := reads.Load(); time.Since(begun) != 3*slow || n != 6 {
			t.Errorf("%d reads after %s", n, time.Since(begun))
		}
		time.Sleep(time.Hour)
		if n := reads.Load(); n > 6 {
			t.Errorf("%d reads by the time that nobody asked", n)
		}
	})
}

// A request that waits only for Changed still finds the last look, although another one is already due.
func TestALookIsKeptForItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 4 * time.Second
		pool, _ := lookers(t, func(gpu.Device, int) (gpu.Reading, error) {
			time.Sleep(slow)
			return gpu.Reading{}, nil
		})
		begun := time.Now()
		if _, why := pool.TryAcquire(devicesWanted(1)); !why.Looking {
			t.Fatalf("%+v", why)
		}
		time.Sleep(time.Second)
		l, why := settled(pool, devicesWanted(2))
		if why != nil || time.Since(begun) != 2*slow {
			t.Fatalf("after %s: %+v", time.Since(begun), why)
		}
		l.Release()
	})
}

// A requested device is checked once a second. Changed is closed when the device is free, and not before.
func TestChangedWakesWaitingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		pool, _ := lookers(t, func(_ gpu.Device, second int) (r gpu.Reading, _ error) {
			reads.Add(1)
			if second < 100 {
				r.Temperature = new(71 + second%10)
			}
			return r, nil
		})
		begun := time.Now()
		l, why := settled(pool, devicesWanted(1))
		for changes := 0; why != nil; {
			if !why.Outside || !strings.Contains(why.WaitsFor, "°C, more than 70") {
				t.Fatalf("%+v", why)
			}
			select {
			case <-why.Changed:
				changes++
			case <-time.After(300 * time.Millisecond):
			}
			if l, why = pool.TryAcquire(devicesWanted(1)); why == nil &&
				(changes != 1 || time.Since(begun) != 100*time.Second) {
				t.Errorf("granted after %s and %d changes", time.Since(begun), changes)
			}
		}
		l.Release()
		if n := reads.Load(); n > 2*102 {
			t.Errorf("%d reads", n)
		}
	})
}

// If the first devices are in use, the others are checked together.
func TestOneLookFindsTheFreeDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = time.Second
		var reads atomic.Int32
		ready := func(d gpu.Device) string {
			reads.Add(1)
			time.Sleep(slow)
			if d.Index < 7 {
				return "used"
			}
			return ""
		}
		pool, err := NewPool(Options{CPUs: 8, GPUs: gpu.These(gputest.Devices(8, "NVIDIA H100", 80<<30)), Ready: ready})
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		begun := time.Now()
		l, why := settled(pool, devicesWanted(1))
		defer l.Release()
		if why != nil || l.GPUs[0].Index != 7 || time.Since(begun) != 2*slow || reads.Load() != 1+8 {
			t.Errorf("after %s and %d reads: %+v", time.Since(begun), reads.Load(), why)
		}
	})
}

// A driver that hangs on a device is a reason to refuse that one, is not asked again for it, and is asked anew once it
// has come back.
func TestADriverThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Pointer[chan struct{}]
		hang := func() (end func()) {
			c := make(chan struct{})
			hangs.Store(&c)
			return func() { hangs.Store(nil); close(c) }
		}
		var reads atomic.Int32
		pool, driver := lookers(t, func(d gpu.Device, _ int) (r gpu.Reading, _ error) {
			if c := hangs.Load(); c != nil && d.Index == 0 {
				reads.Add(1)
				<-*c
			}
			return r, nil
		})
		begun := time.Now()
		end := hang()
		l, why := settled(pool, devicesWanted(1))
		if why != nil || l.GPUs[0].Index != 1 || time.Since(begun) != 20*time.Second {
			t.Fatalf("after %s: %+v", time.Since(begun), why)
		}
		l.Release()
		for range 3 { // it is not waited for a second time, also when nobody asked for a while
			asked := time.Now()
			if _, why = settled(pool, devicesWanted(2)); why == nil || !why.Outside ||
				!strings.Contains(why.WaitsFor, "device 0: ") ||
				!strings.HasSuffix(why.WaitsFor, "the driver has not answered for 20s)") || time.Since(asked) > 0 {
				t.Errorf("after %s: %+v", time.Since(asked), why)
			}
			time.Sleep(time.Hour)
		}
		if n := reads.Load(); n != 1 {
			t.Errorf("it was asked %d times", n)
		}
		if _, err := driver.Read(driver.Devices()[0]); err == nil || errors.Is(err, gpu.ErrGone) {
			t.Errorf("read: %v", err)
		}
		end()
		synctest.Wait()
		if l, why := settled(pool, devicesWanted(2)); why != nil {
			t.Errorf("come back: %+v", why)
		} else {
			l.Release()
		}
	})
}

// A late answer of a driver counts: a broken device is not granted.
func TestALateAnswerIsJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, driver := lookers(t, func(d gpu.Device, second int) (r gpu.Reading, _ error) {
			if d.Index == 0 && second == 0 {
				time.Sleep(time.Minute)
				r.Xids = []uint64{79}
			}
			return r, nil
		})
		if _, why := settled(pool, devicesWanted(2)); why == nil || why.Lost {
			t.Errorf("%+v", why)
		}
		driver.Close() // it is being asked
		time.Sleep(time.Minute)
		if _, why := settled(pool, devicesWanted(2)); why == nil || !why.Lost ||
			!strings.Contains(why.WaitsFor, "Xid 79") {
			t.Errorf("%+v", why)
		}
	})
}

// A device that another benchgraph leased meanwhile is checked again: it may be warm.
func TestAnotherLeaseInvalidatesALook(t *testing.T) {
	host := filepath.Join(t.TempDir(), "host.lock")
	synctest.Test(t, func(t *testing.T) {
		var warm atomic.Bool
		o := Options{CPUs: 8, GPUs: gpu.These(gputest.Devices(2, "NVIDIA H100", 80<<30)), HostLock: host}
		other, err := NewPool(o)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		o.Ready = func(d gpu.Device) string {
			if warm.Load() || d.Index == 1 {
				return "71 °C, more than 70"
			}
			return ""
		}
		pool, err := NewPool(o)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if _, why := settled(pool, devicesWanted(2)); why == nil ||
			!strings.HasPrefix(why.WaitsFor, "2 devices (1 of them free; device 1: 71 °C") {
			t.Fatalf("%+v", why)
		}
		held, _ := other.TryAcquire(devicesWanted(1))
		if _, why := pool.TryAcquire(devicesWanted(1)); why == nil ||
			!strings.Contains(why.WaitsFor, "leased by another benchgraph") {
			t.Fatalf("%+v", why)
		}
		warm.Store(true)
		held.Release()
		if l, why := pool.TryAcquire(devicesWanted(1)); l != nil || !why.Looking {
			l.Release()
			t.Errorf("by an old look: %+v", why)
		}
		if l, why := settled(pool, devicesWanted(1)); l != nil || !strings.Contains(why.WaitsFor, "device 0: 71 °C") {
			l.Release()
			t.Errorf("%+v", why)
		}
	})
}
