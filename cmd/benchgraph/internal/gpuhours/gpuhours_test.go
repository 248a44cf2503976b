package gpuhours

import (
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/engine"
)

func TestAMeterCountsFromTheLeaseToTheEnd(t *testing.T) {
	stopped := 0.0
	m := &Meter{Limit: 3, Stop: func(used float64) { stopped = used }}
	at := func(hours float64) time.Time { return time.Unix(0, 0).Add(time.Duration(hours * float64(time.Hour))) }
	lease := func(address string, hours float64, devices ...string) {
		m.Event(engine.Event{Type: engine.LeaseGranted, Address: address, Time: at(hours),
			Data: map[string]any{"devices": devices}})
	}
	lease("a", 0, "GPU-0", "GPU-1")
	m.Event(engine.Event{Type: engine.NodeStart, Address: "job", Time: at(0)})
	lease("job", 5, "job 7, device 0") // it was queued until then
	m.Event(engine.Event{Type: engine.NodeDone, Address: "a", Time: at(1)})
	m.Event(engine.Event{Type: engine.NodeDone, Address: "without devices", Time: at(5)})
	if stopped != 0 {
		t.Fatalf("stopped after %g hours", stopped)
	}
	m.Event(engine.Event{Type: engine.NodeFailed, Address: "job", Time: at(6.5)})
	if stopped != 3.5 {
		t.Errorf("stopped after %g hours, not 3.5", stopped)
	}
}
