package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
	"github.com/benchgraph/benchgraph/engine"
)

// While a driver is slow to answer, nodes without devices go on, and each other node starts once its devices are known
// to be free. The patience for other processes begins only then.
func TestASlowDriverStallsNothing(t *testing.T) {
	const answer = 4 * time.Second
	for _, test := range []struct {
		name string
		uses func(time.Duration) bool
		want string
	}{
		{"idle", func(time.Duration) bool { return false }, "done 1m4s"},
		// the looks begin at 0, 5 and 10; the last is answered at 14
		{"used for a while", until(10 * time.Second), "done 1m14s"},
		{"used for ever", always, "device_busy 15m4s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				o := &outsiders{uses: map[string]func(time.Duration) bool{}}
				o.uses[outside(w, 1, 15*time.Minute, o)[0].UUID] = func(time.Duration) bool {
					time.Sleep(answer)
					return test.uses(time.Since(o.begin))
				}
				nodes := []node{{at: "trial.a", says: "a", asks: gpus(1), do: takes(time.Minute)}}
				for i := range 10 { // one after the other
					n := node{at: fmt.Sprintf("wheel.%d", i), says: fmt.Sprint(i), do: takes(time.Second)}
					if i > 0 {
						n.needs = []string{fmt.Sprintf("wheel.%d", i-1)}
					}
					nodes = append(nodes, n)
				}
				w.apply(nodes...)
				got := w.ends(o.begin)
				if got["wheel.9"] != "done 10s" || got["trial.a"] != test.want {
					t.Errorf("%v", got)
				}
			})
		})
	}
}

// A hanging driver is reported once, as the reason of the wait. Its devices are waited for with patience; when the
// driver comes back, they are granted.
func TestHangingDriverIsReportedOnce(t *testing.T) {
	for end, want := range map[time.Duration]string{10 * time.Minute: "done 10m0s", time.Hour: "device_busy 15m20s"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			begin := time.Now()
			hung := func(gpu.Device) string { // as watch.Ready answers
				if left := end - time.Since(begin); left > 0 {
					time.Sleep(min(left, 20*time.Second))
				}
				if time.Since(begin) < end {
					return "the driver has not answered for 20s"
				}
				return ""
			}
			pool, err := device.NewPool(device.Options{CPUs: 8,
				GPUs: gpu.These(gputest.Devices(2, "NVIDIA H100", 80<<30)), Ready: hung})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = pool.Close() })
			w.pool, w.store, w.applies.DeviceWait = pool, newMemory(w), 15*time.Minute
			w.apply(node{at: "trial.a", says: "a", asks: gpus(2)},
				node{at: "wheel.x", says: "x", do: takes(time.Second)})
			if got := w.ends(begin); got["trial.a"] != want || got["wheel.x"] != "done 1s" {
				t.Errorf("%v", got)
			}
			notes := 0
			for _, e := range w.events {
				if e.Type == engine.Note && strings.Contains(e.Reason, "the driver has not answered") {
					notes++
				}
			}
			if notes != 1 {
				t.Errorf("%d notes", notes)
			}
			time.Sleep(time.Minute) // the last look comes back
		})
	}
}

// While a device is looked at, the slot, the cores and the quiet that its node needs are not granted to later nodes.
// Otherwise the node would find them taken each time that its device is known to be free.
func TestReservationDuringALook(t *testing.T) {
	for _, test := range []struct {
		name        string
		parallelism int
		first, rest device.Request
	}{
		{name: "the last slot", parallelism: 1, first: gpus(1)},
		{name: "cores", first: device.Request{CPUs: 8, GPUs: device.GPUs{Count: 1}}},
		{name: "quiet", first: device.Request{Quiet: true, GPUs: device.GPUs{Count: 1}},
			rest: device.Request{Quiet: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				o := &outsiders{uses: map[string]func(time.Duration) bool{}}
				o.uses[outside(w, 1, time.Hour, o)[0].UUID] = func(time.Duration) bool {
					time.Sleep(2 * time.Second)
					return false
				}
				w.applies.Parallelism = test.parallelism
				nodes := []node{{at: "trial.first", says: "first", asks: test.first, lasts: 100 * time.Hour}}
				for i := range 20 {
					nodes = append(nodes, node{at: fmt.Sprintf("later.%02d", i), says: fmt.Sprint(i), asks: test.rest,
						do: takes(time.Hour), lasts: time.Hour})
				}
				w.apply(nodes...)
				if at := w.told(o.begin, engine.NodeStart, "trial.first"); at != 2*time.Second {
					t.Errorf("it started after %s", at)
				}
			})
		})
	}
}

// A look starts again if nobody asked while there was no slot. The patience does not start again.
func TestPatienceOutlastsALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := &outsiders{uses: map[string]func(time.Duration) bool{}}
		o.uses[outside(w, 1, 10*time.Second, o)[0].UUID] = always
		w.applies.Parallelism = 1
		nodes := []node{{at: "trial.a", says: "a", asks: gpus(1), lasts: time.Hour}}
		for i := range 30 {
			nodes = append(nodes, node{at: fmt.Sprintf("wheel.%02d", i), says: fmt.Sprint(i),
				do: takes(10 * time.Second), lasts: 10 * time.Second})
		}
		w.apply(nodes...)
		if e := w.event(engine.NodeFailed, "trial.a"); e.Time.Sub(o.begin) > 4*time.Minute {
			t.Errorf("it was given up after %s", e.Time.Sub(o.begin))
		}
	})
}

// Another process always uses one device. A wide node that needs two of the remaining ones must not wait for ever: a
// reservation is made if the remaining devices are enough.
func TestReservationBesideOtherProcesses(t *testing.T) {
	for _, leased := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			o := &outsiders{begin: time.Now(), uses: map[string]func(time.Duration) bool{}}
			devices := gputest.Devices(3, "NVIDIA H100", 80<<30)
			options := device.Options{CPUs: 64, GPUs: gpu.These(devices), Ready: o.ready, HostLock: w.dir +
				"/host.lock"}
			pool, err := device.NewPool(options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = pool.Close() })
			if leased {
				options.GPUs, options.Ready = gpu.These(devices[2:]), nil
				other, err := device.NewPool(options)
				if err != nil {
					t.Fatal(err)
				}
				held, _ := other.TryAcquire(gpus(1))
				defer held.Release()
			} else {
				o.uses[devices[2].UUID] = always
			}
			w.pool, w.store, w.applies.DeviceWait = pool, newMemory(w), time.Hour
			nodes := []node{
				{at: "wheel.wide", says: "wheel", do: takes(5 * time.Minute), lasts: 5 * time.Minute},
				{at: "trial.wide", says: "wide", needs: []string{"wheel.wide"}, asks: gpus(2), do: takes(time.Minute),
					lasts: time.Minute},
			}
			for i := range 12 {
				lasts := time.Duration(10+i) * time.Minute
				nodes = append(nodes, node{at: fmt.Sprintf("small.%02d", i), says: fmt.Sprint(i), asks: gpus(1),
					do: takes(lasts), lasts: lasts})
			}
			w.apply(nodes...)
			// the first two small ones are the longest
			if wide := w.told(o.begin, engine.NodeStart, "trial.wide"); wide > 22*time.Minute {
				t.Errorf("leased %t: the wide one started after %s", leased, wide)
			}
		})
	}
}

// Another process leaves two devices at once. A wide node gets them, although one is seen earlier than the other.
func TestDevicesFreedTogetherAreGrantedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := &outsiders{uses: map[string]func(time.Duration) bool{}}
		devices := outside(w, 2, time.Hour, o)
		for i, d := range devices {
			o.uses[d.UUID] = func(time.Duration) bool {
				time.Sleep(time.Duration(i+1) * 700 * time.Millisecond)
				return time.Since(o.begin) < time.Minute
			}
		}
		w.apply(
			node{at: "trial.wide", says: "wide", asks: gpus(2), do: takes(time.Minute), lasts: time.Hour},
			node{at: "trial.small", says: "small", asks: gpus(1), do: takes(time.Hour), lasts: time.Minute},
		)
		if wide := w.told(o.begin, engine.NodeStart, "trial.wide"); wide > 65*time.Second {
			t.Errorf("it started after %s", wide)
		}
	})
}

// Another benchgraph has given back a device, and the device is looked at: no wait is reported.
func TestLookIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		options := device.Options{CPUs: 8, GPUs: gpu.These(gputest.Devices(1, "NVIDIA H100", 80<<30)),
			HostLock: w.dir + "/host.lock"}
		other, err := device.NewPool(options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = other.Close() })
		options.Ready = func(gpu.Device) string { time.Sleep(time.Second); return "" }
		pool, err := device.NewPool(options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = pool.Close() })
		w.pool, w.store = pool, newMemory(w)
		held, _ := other.TryAcquire(gpus(1))
		time.AfterFunc(5*time.Minute, held.Release)
		w.apply(node{at: "trial.a", says: "a", asks: gpus(1)})
		var notes []string
		for _, e := range w.events {
			if e.Type == engine.Note {
				notes = append(notes, e.Reason)
			}
		}
		if len(notes) != 1 || !strings.Contains(notes[0], "leased by another benchgraph") {
			t.Errorf("%q", notes)
		}
	})
}
