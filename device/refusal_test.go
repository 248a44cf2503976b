package device_test

import (
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/device"
)

// TestRefusals: whoever keeps which devices, a request is granted when enough are left, and a refusal never blames others for
// what leases of benchgraphs could serve; where nothing is leased, it does blame them.
func TestRefusals(t *testing.T) {
	host := filepath.Join(t.TempDir(), "host.lock")
	rapid.Check(t, func(t *rapid.T) {
		const idle, ours, theirs, used, lost = 0, 1, 2, 3, 4
		devices := device.FakeGPUs(rapid.IntRange(1, 5).Draw(t, "devices"), "NVIDIA L4", 24*gib)
		state, now := map[string]int{}, map[string]int{}
		count := map[int]int{}
		for _, d := range devices {
			state[d.UUID] = rapid.IntRange(idle, lost).Draw(t, "state")
			count[state[d.UUID]]++
		}
		is := func(what int) func(device.Device) string {
			return func(d device.Device) string {
				if now[d.UUID] == what {
					return "so it is"
				}
				return ""
			}
		}
		open := func() *device.LocalPool {
			// The doubtful ones are granted last: so those that are to be leased are the ones that are leased.
			last := func(d device.Device) bool { return now[d.UUID] != ours && now[d.UUID] != theirs }
			p, err := device.NewPool(device.Options{CPUs: 8, GPUs: devices, Ready: is(used), Lost: is(lost), Last: last, HostLock: host})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
			return p
		}
		mine, other := open(), open()
		hold := func(p *device.LocalPool, what int) {
			for uuid, s := range state {
				if s == what {
					now[uuid] = what
				}
			}
			if count[what] == 0 {
				return
			}
			l, why := p.TryAcquire(device.Request{GPUs: device.GPUs{Count: count[what]}})
			if why != nil {
				t.Fatal(why.WaitsFor)
			}
			t.Cleanup(l.Release)
			for _, d := range l.GPUs {
				if state[d.UUID] != what {
					t.Fatalf("%s is held, which is %d", d.UUID, state[d.UUID])
				}
				now[d.UUID] = idle
			}
		}
		hold(mine, ours)
		hold(other, theirs)
		for uuid, s := range state {
			now[uuid] = s
		}
		want := rapid.IntRange(1, len(devices)).Draw(t, "want")
		l, why := mine.TryAcquire(device.Request{GPUs: device.GPUs{Count: want}})
		if l != nil {
			defer l.Release()
			if slices.ContainsFunc(l.GPUs, func(d device.Device) bool { return state[d.UUID] != idle }) {
				t.Errorf("%v of %v are granted", l.GPUs, state)
			}
		}
		could := len(devices) - count[used] - count[lost] // if all leases were given back
		switch {
		case (why == nil) != (count[idle] >= want):
			t.Errorf("%v, %d wanted: %+v", count, want, why)
		case why == nil:
		case why.Lost != (len(devices)-count[lost] < want):
			t.Errorf("%v, %d wanted: %+v", count, want, why)
		case why.Outside && could >= want, !why.Outside && count[ours]+count[theirs] == 0:
			t.Errorf("%v, %d wanted: %+v", count, want, why)
		}
	})
}
