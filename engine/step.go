package engine

import (
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/failure"
)

// Action is what a plan does with a node.
type Action string

// The actions. A node that is neither up to date nor wanted is Cached when its users are up to date without it, and
// Skip when nothing that could use it can run.
const (
	Run     Action = "run"     // its result is missing, stale, or to be replaced
	Cached  Action = "cached"  // its result is in the store, or nothing needs it
	Skip    Action = "skip"    // declared not to be run
	Blocked Action = "blocked" // cannot be run: it failed before, lacks something, or needs a node that does
)

// Step is the plan for one node.
type Step struct {
	Node     *Node
	Action   Action
	Reason   string
	Key      cache.Key        // provisional while a node in Node.After is still to be run
	Text     string           // the description that Key was made from
	Estimate time.Duration    // of a run; 0: unknown
	Failure  *journal.Attempt // Blocked: the remembered failure of the node itself
	Never    bool             // Blocked: no device of this machine can ever serve it

	state    state
	found    found    // in the store and the journal
	redo     redo     // why the node runs although it has an outcome
	obstacle obstacle // to a run
}

// state is the state of a step. A plan gives every step one of the states missing and unneeded to excluded. In an
// apply, a missing step passes through the states ready to storing and ends as present, faltered or failed. A step may
// also end in another way than planned, because of its dependencies.
//
// The order matters: of two dependencies that keep a node from running, the one with the greater state is named.
type state uint8

const (
	// missing: the node has no outcome that stands, and nothing keeps it from running. The node is run if it is wanted,
	// unless another node of the plan has the same key. In an apply, some dependency has not ended.
	missing state = iota

	// ready: all dependencies have ended, and the step is in the ready queue.
	ready

	// parked: all dependencies have ended, but none of the node's spans is held.
	parked

	// waiting: the step waits for the end of a pause before its next attempt, of another apply that makes its result,
	// or of a check that another step has begun.
	waiting

	// running: the step holds a lease, for an attempt or for checks.
	running

	// storing: the attempt is over but for the disk, and takes no slot.
	storing

	// unneeded: as missing or blocked, but every user of the node is up to date or cannot run.
	unneeded

	// present: the store has a result, which need not or cannot be replaced.
	present

	// faltered: the last attempt failed with a class that the next apply tries again.
	faltered

	// held: a dependency has faltered.
	held

	// failed: an attempt failed with a class that is not tried again until an input changes.
	failed

	// stuck: a dependency has failed.
	stuck

	// hindered: this machine or the file keeps the node, or a dependency, from running.
	hindered

	// excluded: the file declares that the node, or a dependency, is skipped.
	excluded
)

// afterFailure returns the state of a node that failed.
func afterFailure(f *failure.Failure) state {
	if f.Class.Retried() {
		return faltered
	}
	return failed
}

func (s state) isFailure() bool { return s == faltered || s == failed }

func (s state) isBlocked() bool { return s == held || s == stuck || s == hindered }

// hinders reports whether a dependency in this state keeps a node from running.
func (s state) hinders() bool { return s > present }

// user returns the state of a node that needs one in state s, where s hinders.
func (s state) user() state {
	if s.isFailure() {
		return s + 1
	}
	return s
}

// redo is the reason why a node runs although it has an outcome.
type redo uint8

const (
	keep    redo = iota // no reason: an existing outcome stands
	follow              // an input of the result is made again
	retry               // the outcome is a failure, or a result a part of which failed: failures are to be retried
	replace             // the user selected the node
)

// obstacle is something that keeps a node from running. The zero obstacle is none.
type obstacle struct {
	state  state // of the node because of the obstacle
	reason string
	never  bool  // no device of this machine can ever serve the node
	larger bool  // a larger machine could run the node
	by     *Node // the dependency that cannot run; nil: the node itself cannot
}

// found is what the store and the journal have for a node, beside Step.Failure.
type found struct {
	entry         *cache.Meta // the result; nil: none
	twin          *Node       // the node of the plan that makes the same result; nil: none
	asked         *Asked      // keys without a whole entry; nil: none
	damage        string      // of an entry that was damaged; empty: none
	gone          string      // part outside of the store that is gone; empty: none
	succeeded     bool        // the last attempt succeeded, or the store has a result made from this node's result
	outdated      bool        // the entry was read from results that were replaced since
	ignoreEvicted bool        // Key was made with the present state of evicted dependencies
}

// outcome returns the state that a node has by its result or failure alone.
func (s *Step) outcome() state {
	switch {
	case s.found.entry != nil:
		return present
	case s.Failure != nil:
		return afterFailure(s.Failure.Failure)
	}
	return missing
}

// evicted reports whether the node succeeded and its result is no longer in the store.
func (s *Step) evicted() bool { return s.found.succeeded && s.outcome() == missing }

// renews reports whether the user wants another result in place of the stored one.
func (s *Step) renews() bool { return s.redo == replace || s.redo == retry && s.found.entry != nil }

// refused reports whether the user wants the node to run again, and an obstacle makes its outcome stand.
func (s *Step) refused() bool {
	return s.redo >= retry && s.obstacle.state != missing && s.state == s.outcome()
}

// absence returns why a node that ran before has no result.
func (s *Step) absence() string {
	switch {
	case s.found.damage != "":
		return "its result is damaged: " + s.found.damage
	case s.found.gone != "":
		return s.found.gone
	}
	return "not in the store"
}

// Stored returns the result that stands. It reports false if there is none: the result will be made, is not needed, or
// is made by another node with the same key.
func (s *Step) Stored() (cache.Meta, bool) {
	if s.found.entry == nil || s.Action == Run {
		return cache.Meta{}, false
	}
	return *s.found.entry, true
}

// Asked lists the questions to the store that found no whole entry.
type Asked struct {
	Keys, Contents []cache.Key  // without an entry
	Gone           []cache.Meta // entries with a missing part outside of the store
	Damaged        bool         // an entry was damaged; the store has removed it
}

// Asked returns the questions to the store that found no whole entry, before the one that did.
func (s *Step) Asked() Asked {
	if s.found.asked == nil {
		return Asked{}
	}
	return *s.found.asked
}
