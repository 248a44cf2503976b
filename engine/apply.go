package engine

import (
	"context"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/failure"
)

// ApplyOptions configure an apply.
type ApplyOptions struct {
	Store       cache.Store
	Journal     *journal.Journal
	Pool        device.Pool
	Room        Room                   // where spans are held; nil: there is room for all spans
	Scratch     func() (string, error) // makes an empty directory that Store.Put can take a result from
	LogDir      string                 // the directory of the attempts' logs
	RunID       string                 // names this apply in the journal
	Parallelism int                    // the greatest number of nodes that run at once; 0: as many as the pool grants
	FailFast    bool                   // start nothing more after the first failure
	DeviceWait  time.Duration          // a node fails after such a wait for devices that other processes use; 0: never
	Emit        func(Event)            // called by one goroutine at a time; nil: events are dropped
}

// Result sums up an apply. The sum of the numbers is the number of nodes in the plan.
type Result struct {
	Done     int // ran and succeeded
	Cached   int
	Failed   int // ran and failed, or remembered as failed
	Blocked  int
	Skipped  int
	NotRun   int      // not reached: after an interrupt, or after a failure with FailFast
	Failures []Failed // in the order of events
	Standing *Plan    // the plan that would be made now, if every node has a result or is skipped; else nil
}

// Failed is one node that failed for good.
type Failed struct {
	Address string
	Failure failure.Failure
	Log     string
}

// DefaultRetry returns the Retry of failures of a class whose rule has none.
func DefaultRetry(c failure.Class) Retry {
	if c.Retried() {
		return Retry{Attempts: 3, Backoff: time.Second}
	}
	return Retry{Attempts: 1}
}

// Apply runs a plan in one scheduling loop, and returns when no attempt is running any more. The Result holds the
// failures of nodes; an error means that the engine itself could not go on. When ctx ends, Apply ends the running
// attempts, starts no other, and returns the cause of ctx.
func Apply(ctx context.Context, p *Plan, o ApplyOptions) (*Result, error) {
	return newRun(ctx, p, o).apply()
}

// apply is the loop.
func (r *run) apply() (*Result, error) {
	defer r.close()
	r.begin()
	for {
		r.start()
		r.expect()
		if r.stopping() {
			r.checks.stop()
		}
		if r.busy() == 0 && (r.stopping() || r.counts[waiting]+r.startable() == 0) {
			break
		}
		r.listen()
	}
	r.result.NotRun = len(r.steps) - r.ended
	if r.fatal != nil {
		return &r.result, r.fatal
	}
	if r.ctx.Err() != nil {
		return &r.result, context.Cause(r.ctx)
	}
	r.result.Standing = r.standing()
	return &r.result, nil
}

// standing returns the plan that would be made now, if every node has a result or is skipped; nil otherwise.
func (r *run) standing() *Plan {
	for i := range r.steps {
		if s := &r.steps[i]; s.state != excluded && (s.state != present || s.found.entry == nil) {
			return nil
		}
	}
	for i := range r.steps {
		s := &r.steps[i]
		if s.state == excluded {
			continue
		}
		entry := s.found.entry
		*s = Step{Node: s.Node, Action: Cached, Reason: upToDate, Key: s.Key, Text: s.Text, state: present}
		if s.found.entry = entry; entry.Key != s.Key {
			s.Reason = sameContent
		}
	}
	return &Plan{Graph: r.plan.Graph, Steps: r.steps, options: r.plan.options}
}
