package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
	"github.com/benchgraph/benchgraph/engine"
)

// A node that needs two devices starts, although nodes that need one device keep coming.
func TestALargeNodeIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store = newMemory(w)
		pool, err := device.NewPool(device.Options{CPUs: 64,
			GPUs: gpu.These(gputest.Devices(2, "NVIDIA H100", 80<<30))})
		if err != nil {
			t.Fatal(err)
		}
		w.pool = pool
		one, two := device.Request{GPUs: device.GPUs{Count: 1}}, device.Request{GPUs: device.GPUs{Count: 2}}
		var nodes []node
		for i := range 40 { // the first is shorter than declared, so that never both devices are free at once
			at := fmt.Sprintf("small.%02d", i)
			n := node{at: at, says: at, asks: one, do: takes(3 * time.Minute), lasts: 3 * time.Minute}
			if i == 0 {
				n.do = takes(90 * time.Second)
			}
			nodes = append(nodes, n)
		}
		nodes = append(nodes,
			node{at: "wheel.large", says: "wheel", do: takes(5 * time.Minute), lasts: 5 * time.Minute},
			node{at: "trial.large", says: "large", needs: []string{"wheel.large"}, asks: two, do: takes(time.Minute),
				lasts: time.Minute},
			node{at: "trial.short", says: "short", needs: []string{"wheel.large"}, asks: one, do: takes(time.Second),
				lasts: time.Second},
		)
		begin := time.Now()
		w.apply(nodes...)
		large := w.told(begin, engine.NodeStart, "trial.large").Round(time.Second)
		if large > 8*time.Minute {
			t.Errorf("the large one started after %s", large)
		}
		if short := w.told(begin, engine.NodeDone, "trial.short").Round(time.Second); short > large {
			t.Errorf("a short one that would have been over in time ended after %s, the large one started after %s",
				short, large)
		}
	})
}
