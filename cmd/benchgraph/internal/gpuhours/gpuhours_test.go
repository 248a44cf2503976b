package gpuhours

import (
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/engine"
)

func TestAMeterCountsTheDurationOfAttempts(t *testing.T) {
	stopped := 0.0
	m := &Meter{Limit: 3, Stop: func(used float64) { stopped = used }}
	lease := func(address string, devices ...string) {
		m.Event(engine.Event{Type: engine.LeaseGranted, Address: address, Data: map[string]any{"devices": devices}})
	}
	end := func(kind engine.EventType, address string, hours float64) {
		m.Event(engine.Event{Type: kind, Address: address, Duration: time.Duration(hours * float64(time.Hour))})
	}
	lease("a", "GPU-0", "GPU-1")
	m.Event(engine.Event{Type: engine.NodeStart, Address: "job"})
	end(engine.NodeDone, "a", 1)
	end(engine.NodeDone, "without devices", 5)
	end(engine.NodeFailed, "never ran", 5)
	lease("job", "job 7, device 0") // the job may have ended by now
	if stopped != 0 {
		t.Fatalf("stopped after %g hours", stopped)
	}
	end(engine.NodeFailed, "job", 1.5)
	if stopped != 3.5 {
		t.Errorf("stopped after %g hours, not 3.5", stopped)
	}
}
