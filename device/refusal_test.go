package device_test

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
)

// settled asks a pool until it knows the answer.
func settled(p device.Pool, r device.Request) (*device.Lease, *device.Refusal) {
	for {
		l, why := p.TryAcquire(r)
		if why == nil || !why.Looking {
			return l, why
		}
		<-why.Changed
	}
}

// TestRefusals: whoever keeps which devices, a request is granted when enough are left, and a refusal never blames
// others for what leases of benchgraphs could serve; where nothing is leased, it does blame them. The free devices that
// nobody else keeps are never enough.
func TestRefusals(t *testing.T) {
	host := filepath.Join(t.TempDir(), "host.lock")
	rapid.Check(t, func(rt *rapid.T) {
		states := rapid.SliceOfN(rapid.IntRange(idle, lost), 1, 5).Draw(rt, "states")
		want := rapid.IntRange(1, len(states)).Draw(rt, "want")
		synctest.Test(t, func(t *testing.T) { checkRefusal(t, host, states, want) })
	})
}

// How a device is in TestRefusals.
const idle, ours, theirs, used, lost = 0, 1, 2, 3, 4

func checkRefusal(t *testing.T, host string, states []int, want int) {
	devices := gputest.Devices(len(states), "NVIDIA L4", 24*gib)
	var mu sync.Mutex
	state, now := map[string]int{}, map[string]int{}
	count := map[int]int{}
	for i, d := range devices {
		state[d.UUID] = states[i]
		count[states[i]]++
	}
	become := func(uuid string, what int) {
		mu.Lock()
		defer mu.Unlock()
		now[uuid] = what
	}
	is := func(d gpu.Device, what int) bool {
		mu.Lock()
		defer mu.Unlock()
		return now[d.UUID] == what
	}
	why := func(what int) func(gpu.Device) string {
		return func(d gpu.Device) string {
			if is(d, what) {
				return "so it is"
			}
			return ""
		}
	}
	open := func() *device.LocalPool {
		// The doubtful ones are granted last: so those that are to be leased are the ones that are leased.
		last := func(d gpu.Device) bool { return !is(d, ours) && !is(d, theirs) }
		p, err := device.NewPool(device.Options{CPUs: 8, GPUs: gpu.These(devices), Ready: why(used), Lost: why(lost),
			Last: last, HostLock: host})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	hold := func(p *device.LocalPool, what int) *device.Lease {
		for uuid, s := range state {
			if s == what {
				become(uuid, what)
			}
		}
		if count[what] == 0 {
			return nil
		}
		l, refused := settled(p, device.Request{GPUs: device.GPUs{Count: count[what]}})
		if refused != nil {
			t.Fatal(refused.WaitsFor)
		}
		for _, d := range l.GPUs {
			if state[d.UUID] != what {
				t.Fatalf("%s is held, which is %d", d.UUID, state[d.UUID])
			}
			become(d.UUID, idle)
		}
		return l
	}
	mine, other := open(), open()
	defer mine.Close()
	defer other.Close()
	defer hold(mine, ours).Release()
	defer hold(other, theirs).Release()
	for uuid, s := range state {
		become(uuid, s)
	}
	time.Sleep(5 * time.Second) // nobody asks for them any more
	l, refused := settled(mine, device.Request{GPUs: device.GPUs{Count: want}})
	if l != nil {
		defer l.Release()
		if slices.ContainsFunc(l.GPUs, func(d gpu.Device) bool { return state[d.UUID] != idle }) {
			t.Errorf("%v of %v are granted", l.GPUs, state)
		}
	}
	if refused != nil && mine.Free(device.Request{GPUs: device.GPUs{Count: want}}).GPUs-refused.Taken >= want {
		t.Errorf("%v, %d wanted: enough are free, and %d taken", count, want, refused.Taken)
	}
	could := len(devices) - count[used] - count[lost] // if all leases were given back
	switch {
	case (refused == nil) != (count[idle] >= want):
		t.Errorf("%v, %d wanted: %+v", count, want, refused)
	case refused == nil:
	case refused.Lost != (len(devices)-count[lost] < want):
		t.Errorf("%v, %d wanted: %+v", count, want, refused)
	case refused.Outside && could >= want, !refused.Outside && count[ours]+count[theirs] == 0:
		t.Errorf("%v, %d wanted: %+v", count, want, refused)
	}
}
