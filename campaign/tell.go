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

// teller passes on the events of an apply's waves. It passes on each node's standing state and each verdict once,
// although each wave plans the same nodes and judges the same blocks again.
type teller struct {
	emit func(engine.Event) // nil: nobody listens
	sent map[string]bool    // what was passed on: addresses, verdicts and notes
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
		again = t.sent[e.Address]
	case engine.NodeCached:
		again = t.again(e.Address)
	case engine.NodeFailed:
		again = t.again(e.Address) && e.Attempt == 0
	case engine.NodeDone:
		t.again(e.Address)
		t.done[e.Address] = true
	case engine.VerdictMade: // NotRun is no news: a later wave measures it, or there is nothing to tell
		again = e.Data["outcome"] == stats.NotRun || t.again(fmt.Sprint(e.Data["compare"], e.Data["benchmark"],
			e.Data["candidate"], e.Data["outcome"], e.Data["blocks"]))
	case engine.Note:
		again = t.again(e.Address + "\x00" + e.Reason)
	}
	if !again && t.emit != nil {
		t.emit(e)
	}
}

// again reports whether id was sent before, and notes it as sent.
func (t teller) again(id string) bool {
	sent := t.sent[id]
	t.sent[id] = true
	return sent
}

// tellQuarantines makes gpus emit an event for each device that is left out. Any goroutine that inspects a device may
// find one, so the returned function lets only one goroutine at a time call emit.
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
