package journal

import (
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/failure"
)

// Attempt is one try at a node, as the journal keeps it.
type Attempt struct {
	ID       string           `json:"id"` // sortable, unique: also the name of its log file
	Run      string           `json:"run"`
	Address  string           `json:"address"`
	Key      cache.Key        `json:"key"`
	Number   int              `json:"number"` // 1 for the first try in its run
	Start    time.Time        `json:"start"`
	Duration time.Duration    `json:"duration"`
	Queued   time.Duration    `json:"queued,omitempty"`  // before it ran on another machine; no part of Duration
	Failure  *failure.Failure `json:"failure,omitempty"` // nil: it succeeded
	Devices  []string         `json:"devices,omitempty"` // UUIDs of the devices it was given
	// class of the machine and kind of the devices, as samples record them; empty: no matter
	Hardware string `json:"hardware,omitempty"`
	// ID of the attempt whose result was there, and was to be replaced; empty: there was none
	Replaces string `json:"replaces,omitempty"`
}

// Interrupted reports whether the attempt was ended with its apply, so that it says nothing of the node.
func (a *Attempt) Interrupted() bool {
	return a.Failure != nil && a.Failure.Rule == failure.Interrupted
}
