package campaign

import (
	"fmt"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/tasks"
)

// teller tells the events of an apply's waves, each node's standing state and each verdict once: a later wave plans the
// same nodes and judges the same blocks again.
type teller struct {
	emit func(engine.Event) // nil: nobody listens
	told map[string]bool    // addresses, verdicts and notes
	done map[string]bool    // addresses of nodes that ran and succeeded, in any wave
}

func newTeller(emit func(engine.Event)) teller {
	return teller{emit, map[string]bool{}, map[string]bool{}}
}

func (t teller) tell(e engine.Event) {
	if e.Type == engine.NodeFailed && tasks.KnownIssue(e.Failure) {
		e.Type, e.Reason, e.Failure = engine.NodeSkipped, findings.Explain(e.Failure), nil
	}
	again := false
	switch e.Type {
	case engine.NodeSkipped:
		again = t.told[e.Address]
	case engine.NodeCached:
		again = t.again(e.Address)
	case engine.NodeFailed:
		again = t.again(e.Address) && e.Attempt == 0
	case engine.NodeDone:
		t.again(e.Address)
		t.done[e.Address] = true
	case engine.VerdictMade: // when nothing is measured, a later wave measures it, or there is nothing to tell
		again = e.Data["outcome"] == stats.NotRun || t.again(fmt.Sprint(e.Data["compare"], e.Data["benchmark"],
			e.Data["candidate"], e.Data["outcome"], e.Data["blocks"]))
	case engine.Note:
		again = t.again(e.Address + "\x00" + e.Reason)
	}
	if !again && t.emit != nil {
		t.emit(e)
	}
}

// again reports whether something was told before, and notes that it is told.
func (t teller) again(id string) bool {
	told := t.told[id]
	t.told[id] = true
	return told
}

// tellQuarantines has devices that are left out told among the events. They are found by whoever looks at a device, so
// that emit is called by several goroutines, one after the other.
func tellQuarantines(gpus *gpu.Driver, emit func(engine.Event)) func(engine.Event) {
	if emit == nil {
		return nil
	}
	var mu sync.Mutex
	one := func(e engine.Event) {
		mu.Lock()
		defer mu.Unlock()
		emit(e)
	}
	gpus.Tell(func(q gpu.Quarantine) {
		one(engine.Event{Type: engine.Note, Time: time.Now(), Reason: q.String(),
			Data: map[string]any{"quarantine": q}})
	})
	return one
}
