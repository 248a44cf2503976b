package device

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
	"github.com/benchgraph/benchgraph/device/gpu/watch"
)

// settled asks a pool until it knows the answer.
func settled(p *LocalPool, r Request) (*Lease, *Refusal) {
	for {
		l, why := p.TryAcquire(r)
		if why == nil || !why.Looking {
			return l, why
		}
		<-why.Changed
	}
}

// A device that reported an error of its own, or that vanished, is granted to nobody any more, whoever found it out,
// and is told of once. One whose memory is not freed is for Ready to keep back.
func TestQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, devices := play(func(dev gpu.Device, second int) (gpu.Reading, error) {
			switch {
			case dev.Index == 0 && second == 3:
				return gpu.Reading{Xids: []uint64{31, 79, 48}}, nil
			case dev.Index == 1 && second >= 5:
				return gpu.Reading{}, fmt.Errorf("%w: fell off the bus", gpu.ErrGone)
			}
			return gpu.Reading{}, nil
		})
		var told []string
		d.Tell(func(q gpu.Quarantine) { told = append(told, q.String()) })
		pool, err := NewPool(Options{CPUs: 4, GPUs: gpu.These(devices), Ready: watch.Ready(d), Lost: d.Lost})
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		ask := func(n int) *Refusal {
			l, why := settled(pool, Request{GPUs: GPUs{Count: n}})
			l.Release()
			return why
		}
		if why := ask(2); why != nil {
			t.Errorf("two of two: %+v", why)
		}
		held, _ := settled(pool, Request{GPUs: GPUs{Count: 1}})
		w := watch.Begin(d, held.GPUs, func(int) bool { return true }, func() {})
		time.Sleep(3500 * time.Millisecond)
		w.Stop()
		if why := ask(2); why == nil || !why.Lost || !strings.Contains(why.WaitsFor,
			"device 0: Xid 79 (fallen off the bus)") {
			t.Errorf("two when one is lost, although still leased: %+v", why)
		}
		held.Release()
		if why := ask(1); why != nil {
			t.Errorf("one when one is lost: %+v", why)
		}
		if free := pool.Free(Request{GPUs: GPUs{Count: 1}}); free.GPUs != 1 {
			t.Errorf("%d are free", free.GPUs)
		}
		d.LeaveOut(devices[1], "60 GiB of its memory in use")
		if why := ask(1); why != nil {
			t.Errorf("one that is free again: %+v", why)
		}
		time.Sleep(2 * time.Second)
		for range 2 {
			if why := ask(1); why == nil || !why.Lost || !why.Outside ||
				!strings.Contains(why.WaitsFor, "device 1: the device is gone: fell off the bus") {
				t.Errorf("one when both are lost: %+v", why)
			}
		}
		want := []string{
			"device 0 (GPU-00000000-0000-0000-0000-000000000000) is left out from now on: Xid 79 (fallen off the bus)",
			"device 1 (GPU-00000000-0000-0000-0000-000000000001) is left out until it is free: 60 GiB of its " +
				"memory in use",
			"device 1 (GPU-00000000-0000-0000-0000-000000000001) is left out from now on: the device is gone: fell " +
				"off the bus",
		}
		if !slices.Equal(told, want) {
			t.Errorf("told %q", told)
		}
		if all := d.Quarantined(); len(all) != 2 || !all[0].Lasting || !all[1].Lasting {
			t.Errorf("%+v", all)
		}
	})
}

// A device whose speed changed twice in a row is granted when there are too few others.
func TestDoubtfulDevicesAreGrantedLast(t *testing.T) {
	d, devices := play(func(gpu.Device, int) (gpu.Reading, error) { return gpu.Reading{}, nil })
	pool, err := NewPool(Options{CPUs: 4, GPUs: gpu.These(devices), Last: d.Doubtful})
	if err != nil {
		t.Fatal(err)
	}
	granted := func(n int) (indices []int) {
		l, why := pool.TryAcquire(Request{GPUs: GPUs{Count: n}})
		if why != nil {
			t.Fatalf("%+v", why)
		}
		defer l.Release()
		for _, dev := range l.GPUs {
			indices = append(indices, dev.Index)
		}
		return indices
	}
	if fresh := d.Doubt(devices[:1]); fresh != nil || !slices.Equal(granted(1), []int{0}) {
		t.Errorf("after once: %v are doubtful, %v is granted", fresh, granted(1))
	}
	d.Trust(devices[:1])
	if fresh := d.Doubt(devices[:1]); fresh != nil {
		t.Errorf("it was trusted meanwhile: %v", fresh)
	}
	if fresh := d.Doubt(devices[:1]); len(fresh) != 1 || fresh[0].Index != 0 || d.Doubt(devices[:1]) != nil {
		t.Errorf("after twice: %v", fresh)
	}
	if one, two := granted(1), granted(2); !slices.Equal(one, []int{1}) || !slices.Equal(two, []int{0, 1}) {
		t.Errorf("granted were %v and %v", one, two)
	}
	d.Trust(devices[:1])
	if one := granted(1); !slices.Equal(one, []int{0}) {
		t.Errorf("trusted again, granted was %v", one)
	}
}

// A device that this process has just released may have to cool down; a device that others use does not count.
func TestARefusalOfCoolingDevicesSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var warm atomic.Bool
		devices := gputest.Devices(2, "NVIDIA H100", 80<<30)
		pool, err := NewPool(Options{CPUs: 4, GPUs: gpu.These(devices), Ready: func(d gpu.Device) string {
			if warm.Load() && d.Index == 0 {
				return "71 °C, more than 70"
			}
			return ""
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		two := Request{GPUs: GPUs{Count: 2}}
		look := func(when string, settles bool) {
			t.Helper()
			if _, why := settled(pool, two); why == nil || !why.Outside || why.Settles != settles {
				t.Errorf("%s: %+v", when, why)
			}
		}
		warm.Store(true)
		look("never ours", false)
		warm.Store(false)
		time.Sleep(unasked + lookEvery)
		held, _ := settled(pool, Request{GPUs: GPUs{Count: 1}})
		held.Release()
		warm.Store(true)
		look("just given back", true)
		time.Sleep(30 * time.Second)
		look("later", false)
	})
}
