package engine_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// outsiders are other processes that use devices at some times from the start of the story.
type outsiders struct {
	begin time.Time
	uses  map[string]func(at time.Duration) bool // by UUID; nil: never
}

func (o *outsiders) ready(d gpu.Device) string {
	if uses := o.uses[d.UUID]; uses != nil && uses(time.Since(o.begin)) {
		return "used by process 4242 (python of mallory)"
	}
	return ""
}

// outside gives a world some devices and the outsiders that use them.
func outside(w *world, gpus int, wait time.Duration, o *outsiders) []gpu.Device {
	w.t.Helper()
	devices := gputest.Devices(gpus, "NVIDIA H100", 80<<30)
	o.begin = time.Now()
	pool, err := device.NewPool(device.Options{CPUs: 8, GPUs: gpu.These(devices), Ready: o.ready})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			w.t.Error(err)
		}
	})
	w.pool, w.store, w.applies.DeviceWait = pool, newMemory(w), wait
	return devices
}

func gpus(n int) device.Request { return device.Request{GPUs: device.GPUs{Count: n}} }

func always(time.Duration) bool { return true }

func until(end time.Duration) func(time.Duration) bool {
	return func(at time.Duration) bool { return at < end }
}

// ends returns how and when the nodes of an apply ended, in seconds from the start.
func (w *world) ends(begin time.Time) map[string]string {
	ends := map[string]string{}
	for _, e := range w.events {
		switch {
		case e.Type == engine.NodeDone:
			ends[e.Address] = fmt.Sprintf("done %s", e.Time.Sub(begin).Truncate(time.Second))
		case e.Type == engine.NodeFailed && !e.Retrying:
			ends[e.Address] = fmt.Sprintf("%s %s", e.Failure.Rule, e.Time.Sub(begin).Truncate(time.Second))
		case e.Type == engine.NodeSkipped:
			ends[e.Address] = "skipped"
		}
	}
	return ends
}

func TestRequestThatOthersBlockIsGivenUp(t *testing.T) {
	const wait = 15 * time.Minute
	hour := takes(time.Hour)
	for _, test := range []struct {
		name  string
		gpus  int
		wait  time.Duration
		uses  map[int]func(time.Duration) bool
		nodes []node
		want  map[string]string
	}{
		{
			name: "one that never ends", gpus: 1, wait: wait, uses: map[int]func(time.Duration) bool{0: always},
			nodes: []node{{at: "trial.a", says: "a", asks: gpus(1)}, {at: "trial.b", says: "b", asks: gpus(1)},
				{at: "bench.a", says: "c", needs: []string{"trial.a"}}, {at: "wheel.x", says: "x", do: hour}},
			want: map[string]string{"trial.a": "device_busy 15m0s", "trial.b": "device_busy 15m0s",
				"bench.a": "skipped", "wheel.x": "done 1h0m0s"},
		},
		{
			name: "one that ends in time", gpus: 1, wait: wait,
			uses: map[int]func(time.Duration) bool{0: until(14 * time.Minute)},
			nodes: []node{{at: "trial.a", says: "a", asks: gpus(1), do: hour},
				{at: "trial.b", says: "b", asks: gpus(1)}},
			want: map[string]string{"trial.a": "done 1h14m0s", "trial.b": "done 1h14m0s"},
		},
		{
			name: "for ever", gpus: 1, uses: map[int]func(time.Duration) bool{0: until(10 * time.Hour)},
			nodes: []node{{at: "trial.a", says: "a", asks: gpus(1)}},
			want:  map[string]string{"trial.a": "done 10h0m0s"},
		},
		{
			name: "the other device serves, and is waited for, too", gpus: 2, wait: wait,
			uses: map[int]func(time.Duration) bool{0: always},
			nodes: []node{{at: "trial.a", says: "a", asks: gpus(1), do: hour},
				{at: "trial.b", says: "b", asks: gpus(1), do: hour}, {at: "trial.two", says: "two", asks: gpus(2)}},
			want: map[string]string{"trial.a": "done 1h0m0s", "trial.b": "done 2h0m0s",
				"trial.two": "device_busy 2h15m0s"},
		},
		{
			name: "own work is what is missing, then others", gpus: 2, wait: wait,
			uses: map[int]func(time.Duration) bool{0: func(at time.Duration) bool {
				return at > time.Minute
			}},
			nodes: []node{
				{at: "trial.a", says: "a", asks: gpus(1), do: hour},
				{at: "trial.b", says: "b", asks: gpus(1), do: hour},
				{at: "wheel.two", says: "wheel", do: takes(time.Second)},
				{at: "trial.two", says: "two", asks: gpus(2), needs: []string{"wheel.two"}},
			},
			want: map[string]string{"trial.a": "done 1h0m0s", "trial.b": "done 1h0m0s", "wheel.two": "done 1s",
				"trial.two": "device_busy 1h15m0s"},
		},
		{
			name: "it comes and goes, and another device is taken in turn: never is one free", gpus: 2, wait: wait,
			uses: map[int]func(time.Duration) bool{
				0: func(at time.Duration) bool { return int(at/time.Minute)%2 == 0 },
				1: func(at time.Duration) bool { return int(at/time.Minute)%2 == 1 },
			},
			nodes: []node{{at: "trial.two", says: "two", asks: gpus(2)}, {at: "trial.one", says: "one", asks: gpus(1)}},
			want:  map[string]string{"trial.two": "device_busy 15m0s", "trial.one": "done 0s"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				o := &outsiders{uses: map[string]func(time.Duration) bool{}}
				devices := outside(w, test.gpus, test.wait, o)
				for i, uses := range test.uses {
					o.uses[devices[i].UUID] = uses
				}
				w.apply(test.nodes...)
				got := w.ends(o.begin)
				if fmt.Sprint(got) != fmt.Sprint(test.want) {
					t.Errorf("got  %v\nwant %v", got, test.want)
				}
			})
		})
	}
}

// A node that needs disk space waits without limit only while nodes of its own apply hold some, since they end.
func TestDiskSpaceIsWaitedForWithPatience(t *testing.T) {
	const wait = 15 * time.Minute
	room := func(n int64) device.Request { return device.Request{Disk: n} }
	for _, test := range []struct {
		name  string
		free  func(at time.Duration) int64 // of 100
		nodes []node
		want  map[string]string
	}{
		{
			name: "nobody makes room", free: func(time.Duration) int64 { return 10 },
			nodes: []node{{at: "wheel.a", says: "a", asks: room(11)},
				{at: "wheel.b", says: "b", asks: room(10), do: takes(time.Second)}},
			want: map[string]string{"wheel.a": "disk_full 15m1s", "wheel.b": "done 1s"},
		},
		{
			name: "somebody makes room in time", free: func(at time.Duration) int64 { return int64(at / time.Minute) },
			nodes: []node{{at: "wheel.a", says: "a", asks: room(14)}},
			want:  map[string]string{"wheel.a": "done 14m0s"},
		},
		{
			name: "it is kept for own work", free: func(time.Duration) int64 { return 10 },
			nodes: []node{{at: "wheel.a", says: "a", asks: room(6), do: takes(time.Hour)},
				{at: "wheel.b", says: "b", asks: room(5), do: takes(time.Hour)}},
			want: map[string]string{"wheel.a": "done 1h0m0s", "wheel.b": "done 2h0m0s"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				begin := time.Now()
				pool, err := device.NewPool(device.Options{CPUs: 8, Disk: func() device.Disk {
					return device.Disk{Size: 100, Free: test.free(time.Since(begin))}
				}})
				if err != nil {
					t.Fatal(err)
				}
				w.pool, w.store, w.applies.DeviceWait = pool, newMemory(w), wait
				w.apply(test.nodes...)
				if got := w.ends(begin); fmt.Sprint(got) != fmt.Sprint(test.want) {
					t.Errorf("got  %v\nwant %v", got, test.want)
				}
			})
		})
	}
}

// The failure names the device, the process and its user, has a remedy, and has a log like any other.
func TestAGivenUpNodeSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := &outsiders{uses: map[string]func(time.Duration) bool{}}
		var gone atomic.Bool
		o.uses[outside(w, 1, time.Minute, o)[0].UUID] = func(time.Duration) bool { return !gone.Load() }
		r := w.apply(node{at: "trial.a", says: "a", asks: gpus(1)})
		if r.Failed != 1 || r.Failures[0].Failure.Class != failure.Infra || r.Failures[0].Failure.Remedy == "" {
			t.Fatalf("%+v", r)
		}
		e := w.event(engine.NodeFailed, "trial.a")
		const evidence = "device 0: used by process 4242 (python of mallory)"
		if e.Attempt != 1 || !strings.Contains(e.Failure.Evidence, evidence) ||
			!strings.Contains(w.logOf(e), evidence) {
			t.Errorf("%+v", e)
		}
		if note := w.event(engine.Note, ""); !strings.Contains(note.Reason, evidence+"); it is given up after 1m0s") {
			t.Errorf("%q", note.Reason)
		}
		// No candidate is to blame, so the next apply tries again.
		gone.Store(true)
		if r := w.apply(node{at: "trial.a", says: "a", asks: gpus(1)}); r.Done != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// A long wait for other processes is reported once, even while another node runs.
func TestWaitForOtherProcessesIsReported(t *testing.T) {
	for end, want := range map[time.Duration]int{30 * time.Second: 0, 10 * time.Minute: 1} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			o := &outsiders{uses: map[string]func(time.Duration) bool{}}
			o.uses[outside(w, 1, time.Hour, o)[0].UUID] = until(end)
			w.apply(node{at: "trial.a", says: "a", asks: gpus(1)}, node{at: "trial.b", says: "b", asks: gpus(1)},
				node{at: "wheel.x", says: "x", do: takes(time.Hour)})
			notes := 0
			for _, e := range w.events {
				if e.Type == engine.Note && strings.Contains(e.Reason,
					"waiting: 1 device (0 of them free; device 0: used by process 4242") {
					notes++
				}
			}
			if notes != want {
				t.Errorf("after %s: %d notes, want %d", end, notes, want)
			}
		})
	}
}

// While all slots are taken, the node waits for a slot, not for other processes.
func TestWithoutASlotNoTimePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := &outsiders{uses: map[string]func(time.Duration) bool{}}
		o.uses[outside(w, 1, 15*time.Minute, o)[0].UUID] = always
		w.applies.Parallelism = 1
		w.apply(node{at: "trial.a", says: "a", asks: gpus(1), lasts: 2 * time.Hour},
			node{at: "wheel.x", says: "x", do: takes(time.Hour), lasts: time.Hour})
		if e := w.event(engine.NodeFailed, "trial.a"); e.Time.Sub(o.begin) < 74*time.Minute {
			t.Errorf("it was given up after %s", e.Time.Sub(o.begin))
		}
	})
}

// Another process uses a device. The other devices must not stay idle for a reservation, since nobody knows when it
// ends.
func TestNoReservationForAWaitForOtherProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		lock := w.dir + "/host.lock"
		devices := gputest.Devices(2, "NVIDIA H100", 80<<30)
		var pools [2]*device.LocalPool
		for i := range pools {
			var err error
			if pools[i], err = device.NewPool(device.Options{CPUs: 8, GPUs: gpu.These(devices),
				HostLock: lock}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = pools[i].Close() })
		}
		held, why := pools[1].TryAcquire(gpus(1))
		if held == nil {
			t.Fatal(why.WaitsFor)
		}
		time.AfterFunc(time.Hour, held.Release)
		w.pool, w.store, w.applies.DeviceWait = pools[0], newMemory(w), time.Minute
		begin := time.Now()
		w.apply(node{at: "trial.two", says: "two", asks: gpus(2), do: takes(time.Minute)},
			node{at: "trial.one", says: "one", asks: gpus(1), do: takes(time.Minute)})
		got := w.ends(begin)
		if got["trial.one"] != "done 1m0s" || got["trial.two"] != "done 1h1m0s" {
			t.Errorf("%v", got)
		}
	})
}

// A device is warm for a moment after our own work, which is no use by others. Small nodes, for which the cooler device
// is enough, must not start before a wide node for ever.
func TestReservationWhileDevicesCoolDown(t *testing.T) {
	for _, test := range []struct {
		name  string
		cools time.Duration
	}{
		{name: "two devices", cools: 2 * time.Second},
		{name: "they cool down slowly", cools: 25 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				begin := time.Now()
				var mu sync.Mutex
				used := map[string]time.Time{} // by UUID: until when it was
				pool, err := device.NewPool(device.Options{CPUs: 64,
					GPUs: gpu.These(gputest.Devices(2, "NVIDIA H100", 80<<30)), Ready: func(d gpu.Device) string {
						mu.Lock()
						defer mu.Unlock()
						if last, ok := used[d.UUID]; ok && time.Since(last) < test.cools {
							return "71 °C, more than 70"
						}
						return ""
					}})
				if err != nil {
					t.Fatal(err)
				}
				w.pool, w.store, w.applies.DeviceWait = pool, newMemory(w), time.Hour
				runs := func(d time.Duration) func(context.Context, *engine.Env) error {
					return func(_ context.Context, env *engine.Env) error {
						time.Sleep(d)
						mu.Lock()
						defer mu.Unlock()
						for _, d := range env.Lease.GPUs {
							used[d.UUID] = time.Now()
						}
						return nil
					}
				}
				nodes := []node{
					{at: "wheel.wide", says: "wheel", do: takes(5 * time.Minute), lasts: 5 * time.Minute},
					{at: "trial.wide", says: "wide", needs: []string{"wheel.wide"}, asks: gpus(2),
						do: runs(time.Minute), lasts: time.Minute},
				}
				for i := range 8 {
					lasts := time.Duration(10+i) * time.Minute
					nodes = append(nodes, node{at: fmt.Sprintf("small.%d", i), says: fmt.Sprint(i), asks: gpus(1),
						do: runs(lasts), lasts: lasts})
				}
				w.apply(nodes...)
				// The first two are the longest.
				if wide := w.told(begin, engine.NodeStart, "trial.wide"); wide > 18*time.Minute {
					t.Errorf("the wide one started after %s", wide)
				}
			})
		})
	}
}

// The first node whose start can be predicted has a reservation, even behind a node whose start cannot be predicted.
func TestReservationBehindAWaitForOtherProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := &outsiders{uses: map[string]func(time.Duration) bool{}, begin: time.Now()}
		devices := append(gputest.Devices(4, "NVIDIA H100", 80<<30)[2:], gputest.Devices(2, "NVIDIA L4", 24<<30)...)
		o.uses[devices[0].UUID] = always
		pool, err := device.NewPool(device.Options{CPUs: 64, GPUs: gpu.These(devices), Ready: o.ready})
		if err != nil {
			t.Fatal(err)
		}
		w.pool, w.store = pool, newMemory(w)
		w.applies.DeviceWait = time.Hour
		like := func(n int, model string) device.Request {
			return device.Request{GPUs: device.GPUs{Count: n, Model: regexp.MustCompile(model)}}
		}
		h100, one, two := like(2, "H100"), like(1, "L4"), like(2, "L4")
		nodes := []node{
			{at: "trial.never", says: "never", asks: h100, lasts: 100 * time.Hour},
			{at: "wheel.large", says: "wheel", do: takes(5 * time.Minute), lasts: 5 * time.Minute},
			{at: "trial.large", says: "large", needs: []string{"wheel.large"}, asks: two, do: takes(time.Minute),
				lasts: time.Minute},
		}
		for i := range 40 { // the first is shorter than declared, so that never both devices are free at once
			n := node{at: fmt.Sprintf("small.%02d", i), says: fmt.Sprint(i), asks: one, do: takes(3 * time.Minute),
				lasts: 3 * time.Minute}
			if i == 0 {
				n.do = takes(90 * time.Second)
			}
			nodes = append(nodes, n)
		}
		w.apply(nodes...)
		if large := w.told(o.begin, engine.NodeStart, "trial.large"); large > 8*time.Minute {
			t.Errorf("the large one started after %s", large)
		}
	})
}

// TestPatience: other processes use devices at random. A node fails exactly when it has waited for them alone, without
// a break, for the limit. It starts as soon as it can, and nodes without these devices are not affected.
func TestPatience(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const minutes = 40
		count := rapid.IntRange(1, 3).Draw(rt, "devices")
		used := make([][]bool, count) // by device and minute
		for i := range used {
			used[i] = rapid.SliceOfN(rapid.Bool(), minutes, minutes).Draw(rt, "used")
		}
		allowed := rapid.IntRange(1, 8).Draw(rt, "allowed")
		want := rapid.IntRange(1, count).Draw(rt, "want")
		holds := rapid.IntRange(0, 12).Draw(rt, "own minutes")
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			o := &outsiders{uses: map[string]func(time.Duration) bool{}}
			devices := outside(w, count, time.Duration(allowed)*time.Minute, o)
			for i, d := range devices {
				o.uses[d.UUID] = func(at time.Duration) bool {
					m := int(at / time.Minute)
					return m >= minutes || used[i][m]
				}
			}
			// Our own node gets all free devices first; it is longer, and asked first.
			var mu sync.Mutex
			own := 0
			nodes := []node{
				{at: "trial.wanted", says: "wanted", asks: gpus(want)},
				{at: "wheel.other", says: "other", do: takes(time.Hour)},
			}
			var ownFrom, ownTo int
			if holds > 0 {
				nodes = append(nodes, node{at: "trial.own", says: "own", asks: gpus(count), lasts: 10 * time.Hour,
					do: func(ctx context.Context, env *engine.Env) error {
						mu.Lock()
						own, ownFrom = len(env.Lease.GPUs), int(time.Since(o.begin)/time.Minute)
						ownTo = ownFrom + holds
						mu.Unlock()
						time.Sleep(time.Duration(holds) * time.Minute)
						return nil
					}})
			}
			w.apply(nodes...)
			ends := w.ends(o.begin)
			if ends["wheel.other"] != "done 1h0m0s" {
				t.Errorf("the other one: %s", ends["wheel.other"])
			}
			model, either := "", []string(nil)
			for m, waited := 0, 0; model == ""; m++ {
				free := 0
				for i := range used {
					if m < minutes && !used[i][m] {
						free++
					}
				}
				switch {
				case own > 0 && m >= ownFrom && m < ownTo:
					waited = 0
					if m == ownFrom && free >= want { // it takes no time, so that it may go first
						either = append(either, fmt.Sprintf("done %s", (time.Duration(m)*time.Minute).String()))
					}
				case free >= want:
					model = fmt.Sprintf("done %s", (time.Duration(m) * time.Minute).String())
					if waited == allowed { // the devices become free in the moment in which it is given up
						either = append(either, fmt.Sprintf("device_busy %s", (time.Duration(m)*time.Minute).String()))
					}
				case waited == allowed:
					model = fmt.Sprintf("device_busy %s", (time.Duration(m) * time.Minute).String())
				default:
					waited++
				}
			}
			if got := ends["trial.wanted"]; got != model && !slices.Contains(either, got) {
				t.Errorf("devices %v, %d wanted, %d minutes allowed, own %d from %d to %d: %s, want %s", show(used),
					want, allowed, own, ownFrom, ownTo, got, model)
			}
		})
	})
}

func show(used [][]bool) (lines []string) {
	for _, minutes := range used {
		line := slices.Repeat([]byte{'.'}, len(minutes))
		for m, used := range minutes {
			if used {
				line[m] = 'X'
			}
		}
		lines = append(lines, string(line))
	}
	return lines
}
