package journal

import (
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/failure"
)

// Attempt is one try at a node, as recorded in the journal.
type Attempt struct {
	ID       string           `json:"id"` // unique, sortable by time; also the name of its log file
	Run      string           `json:"run"`
	Address  string           `json:"address"`
	Key      cache.Key        `json:"key"`
	Number   int              `json:"number"` // 1 for the first try in its run
	Start    time.Time        `json:"start"`
	Duration time.Duration    `json:"duration"`
	Queued   time.Duration    `json:"queued,omitempty"`  // waiting for another machine; not part of Duration
	Failure  *failure.Failure `json:"failure,omitempty"` // nil: the attempt succeeded
	Devices  []string         `json:"devices,omitempty"` // UUIDs of the leased devices
	// class of the machine and kind of the devices, as samples record them; empty: not relevant
	Hardware string `json:"hardware,omitempty"`
	// ID of the attempt whose stored result this one was to replace; empty: there was none
	Replaces string `json:"replaces,omitempty"`
}

// Interrupted reports whether the attempt ended because its apply did, so that it tells nothing about the node.
func (a *Attempt) Interrupted() bool {
	return a.Failure != nil && a.Failure.Rule == failure.Interrupted
}
