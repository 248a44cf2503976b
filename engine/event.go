package engine

import (
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/failure"
)

// EventType names what happened.
type EventType string

// The events of an apply. Tasks emit the last five through Env.Emit.
const (
	NodeStart     EventType = "node_start"
	NodeProgress  EventType = "node_progress"
	NodeCached    EventType = "node_cached"
	NodeDone      EventType = "node_done"
	NodeFailed    EventType = "node_failed"
	NodeSkipped   EventType = "node_skipped"
	LeaseGranted  EventType = "lease"
	SampleTaken   EventType = "sample"
	SampleInvalid EventType = "sample_invalid"
	FixApplied    EventType = "fix_applied"
	VerdictMade   EventType = "verdict"
	Note          EventType = "diagnostic"
)

// Waiting is the prefix of the reason of a Note about a wait: of the node at its address or, without an address, of
// all ready nodes.
const Waiting = "waiting: "

// Event is one thing that happened. Events are the engine's only output. Fields that do not belong to the type of an
// event are zero.
type Event struct {
	Type     EventType
	Time     time.Time
	Address  string
	Key      cache.Key
	Attempt  int              // number of the try, from 1
	Phase    string           // NodeProgress: the current phase of the task
	Reason   string           // why: of a start, a skip, a retry
	Duration time.Duration    // NodeDone, NodeFailed: of the attempt; NodeStart: of the wait since the node was ready
	Queued   time.Duration    // NodeDone, NodeFailed: of the attempt, while it did not run on the other machine yet
	Failure  *failure.Failure // NodeFailed, SampleInvalid
	Log      string           // NodeStart, NodeDone, NodeFailed: path of the attempt's log
	Retrying bool             // NodeFailed: another attempt follows
	Data     map[string]any   // from the task: metric, value, unit, block, …
}
