// Package engine plans and applies a graph of tasks whose results are kept by content.
//
// It knows no kind of task, no file format and no tool: a Task describes what determines its output and makes it; the
// engine does the rest: keys, staleness, order, leases, retries, events.
package engine

import (
	"context"
	"io"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
)

// Task is what a node does.
//
// Describe writes all that determines the output, except the inputs, and is pure: no clock, no file, no network.
// Run writes the output under env.Out, using only what env gives. An error that wraps a *Failure says of which class it
// is; any other error counts as infra.
type Task interface {
	Describe(d *cache.Description)
	Run(ctx context.Context, env *Env) error
}

// Keeper is a Task part of whose result is not in the store.
//
// Kept looks at a stored result and says what of the rest is gone; empty: nothing. A result of which something is gone is
// none, and is made anew when something needs it.
type Keeper interface {
	Kept(ctx context.Context, e cache.Entry) (gone string, err error)
}

// kept is what Kept says of a result of the node.
func (n *Node) kept(ctx context.Context, e cache.Entry) (gone string, err error) {
	if k, ok := n.Task.(Keeper); ok {
		if e.Dir == "" {
			return "it was made on another machine", nil
		}
		return k.Kept(ctx, e)
	}
	return "", nil
}

// Input is the result of a node that a task needs.
type Input struct {
	Address string
	cache.Entry
}

// End is how a node ended: with a result (Entry.Dir is set), with a failure, or not at all, for a reason.
type End struct {
	Address string
	Entry   cache.Entry
	Failure *cache.Failure
	Action  Action // without a result: Skip or Blocked
	Reason  string // of Skip and Blocked
	Never   bool   // no device of this machine can ever serve it
}

// Env is all that a running task may use.
type Env struct {
	Out     string        // an empty directory: what is in it when Run returns nil is the result
	Work    string        // an empty directory that is removed afterwards
	Scratch string        // holds Out; what a task puts beside that is removed afterwards, too
	Inputs  []Input       // the results of Node.Needs, in that order
	Ends    []End         // how the nodes of Node.After ended, in that order
	Log     io.Writer     // the complete log of this attempt; safe for concurrent use
	Lease   *device.Lease // what was granted of Node.Resources
	Emit    func(Event)   // tells of something within the attempt; the engine fills in time, address and attempt
	Run     string        // the apply that the attempt belongs to
	Key     cache.Key     // of the result
}

// Failure is an error of a known class.
type Failure struct {
	cache.Failure
	Retry *Retry // nil: the default for the class
	Err   error  // the cause, if there is one
}

func (f *Failure) Error() string { return f.Text() }

func (f *Failure) Unwrap() error { return f.Err }

// Retry says how often and how soon a failed attempt is tried again.
type Retry struct {
	Attempts int           // in all; at least 1
	Backoff  time.Duration // before the second attempt; doubled before each further one, at most ten times
}

// Node is one piece of work in a graph. It is not changed once the graph is built.
type Node struct {
	Address   string
	Kind      string
	Task      Task
	Needs     []*Node // must succeed first; their keys are part of this node's key, their results are its inputs
	Order     []*Node // must succeed first; no part of the key and no input
	After     []*Node // must end first, in whatever way; how they ended is part of this node's key
	Resources device.Request
	Turn      int           // of the nodes that could start and ask for the same, those of a lower turn go first
	Spans     []*Span       // it runs while one of them is held; none: it needs none
	Estimate  time.Duration // declared, for as long as it was never run; 0: nothing is
	Place     string        // file:line of the block
	Exclude   Exclude       // not to be run, whatever its state
	Origin    *Origin       // where its result comes from; nil: its block leaves no choice
	Lacks     func() string // asked when it would be run: what it needs and cannot be had here; empty: nothing; nil: it needs nothing
	Standing  *Standing     // what is known of it beforehand; nil: nothing
	History   bool          // a result of its that another one takes the place of is kept beside that
	Reads     bool          // its result only says what its inputs say: it is read anew from one that is made anew

	id int // position in the order of its graph
}

// Standing is what an earlier plan found out of a node, when nothing has changed since. The node is not looked at again, so that it
// needs no Task. All that it waits for stands as well. One that neither has its result in the store nor is excluded stands only
// where all nodes of the graph do.
type Standing struct {
	Key    cache.Key
	Action Action
	Reason string
	Result *cache.Meta // of which only Key and Digest are known; nil: it has none
}

// Origin says which of several sources, in the order in which they are to be tried, a node's result comes from.
type Origin struct {
	Serves   string   `json:"serves"`             // the source; empty: the result is made here
	Reason   string   `json:"reason"`             // why it is made here
	Passed   []string `json:"passed_over"`        // sources before the one that serves; all of them when none does
	Ancestor string   `json:"ancestor,omitempty"` // the revision that Serves was made of, when it is an ancestor; empty: the node's own
	Back     int      `json:"back,omitempty"`     // how many commits back that is
}

// Exclude says that a node is not to be run, and why. The zero Exclude excludes nothing.
type Exclude struct {
	Action Action // Skip (declared) or Blocked (cannot run here)
	Reason string
	Never  bool // Blocked: no device of this machine can ever serve it
}
