// Package engine plans and applies a graph of tasks whose results are kept by content.
//
// The engine knows no kind of task, no file format and no tool. A Task describes all that determines its output, and
// makes the output. The engine does the rest: keys, staleness, order, leases, retries, events.
//
// To read the package, begin with the types in this file, then step.go (the states of a step), decide.go (whether a
// node is up to date), plan.go, and schedule.go with gate.go (how an apply runs a plan).
package engine

import (
	"context"
	"io"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/failure"
)

// Task is the work of a node.
//
// Describe writes all that determines the output except the inputs. It is pure: it reads no clock, file or network.
// Run writes the output under env.Out and uses nothing but env. An error that wraps a *Failure has the class of that
// failure; any other error has the class infra.
type Task interface {
	Describe(d *cache.Description)
	Run(ctx context.Context, env *Env) error
}

// Keeper is a Task that keeps a part of its result outside of the store.
//
// Kept returns which part outside of the store is gone; "" if none is. An entry with a missing part does not count: the
// result is made again when a node needs it.
type Keeper interface {
	Kept(ctx context.Context, e cache.Entry) (gone string, err error)
}

// kept calls the Kept method of the task of a node, if the task is a Keeper.
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

// End is how a node ended: with a result (Entry.Dir is set), with a failure, or without a run, for a reason.
type End struct {
	Address string
	Entry   cache.Entry
	Failure *failure.Failure
	Action  Action // without a result: Skip or Blocked
	Reason  string // of Skip and Blocked
	Never   bool   // no device of this machine can ever serve the node
}

// Env holds all that a running task may use.
type Env struct {
	Out        string        // an empty directory: its content is the result when Run returns nil
	Work       string        // an empty directory that is removed afterwards
	Scratch    string        // the parent of Out; other files in it are removed afterwards
	Inputs     []Input       // the results of Node.Needs, in that order
	Ends       []End         // how the nodes of Node.After ended, in that order
	Log        io.Writer     // the complete log of this attempt; safe for concurrent use
	Lease      *device.Lease // the grant for Node.Resources
	Emit       func(Event)   // reports an event of the attempt; the engine fills in time, address and attempt
	Run        string        // the ID of the apply
	Key        cache.Key     // of the result
	Transcript any           // what the task has run so far, kept as JSON with log and result; nil: nothing
	Estimate   time.Duration // of the duration; 0: unknown
	Devices    []string      // of Remote: devices that the node had on the other machine
	Replaces   *cache.Meta   // the result that the new one replaces; nil: none
}

// Failure is an error with a class.
type Failure struct {
	failure.Failure
	Retry *Retry // nil: the default for the class
	Err   error  // the cause, if there is one
}

func (f *Failure) Error() string { return f.Text() }

func (f *Failure) Unwrap() error { return f.Err }

// Retry says how often and how soon a failed step is retried.
type Retry struct {
	Attempts int           // in all; at least 1
	Backoff  time.Duration // before the second attempt; doubled before each further one, up to ten times
}

// Condition returns what a machine lacks to run a node; "" if nothing.
type Condition func(context.Context) string

// Node is one piece of work in a graph. It must not change once the graph is built.
type Node struct {
	Address   string
	Kind      string
	Task      Task
	Needs     []*Node // must succeed first; their keys are part of this node's key, their results are its inputs
	Order     []*Node // must succeed first; no part of the key and no input
	After     []*Node // must end first, in any way; how they ended is part of this node's key
	Resources device.Request
	Checks    []Check       // end before Resources are granted
	Turn      int           // among ready nodes with the same Resources, those with a lower turn start first
	Spans     []*Span       // the node runs while one of them is held; none: at any time
	Estimate  time.Duration // declared duration, used until the node has run; 0: none
	Place     string        // file:line of the block
	Exclude   Exclude       // the node is not to be run, whatever its state
	Origin    *Origin       // the source of the result; nil: the block leaves no choice
	Lacks     Condition     // what this machine lacks to run the node; nil: never anything
	// returns why the results of Needs that are there (keys, by address) keep the node from running; "": they do not
	Unfit func(ctx context.Context, results map[string]cache.Key) string
	// runs the task on another machine, and returns how long it ran there, without the time in a queue; nil: the task
	// runs here
	Remote   func(context.Context, *Env) (time.Duration, error)
	Hardware string    // hardware that the node runs on, for the journal
	Standing *Standing // outcome from an earlier plan; nil: none
	History  bool      // a result that is replaced is kept beside the new one
	Reads    bool      // the result only says what its inputs say, and is read again when one is made again

	id int // index in the order of the graph
}

// Standing is the outcome of a node in an earlier plan, for a node that has not changed since. The node is not looked
// up again, and needs no Task. All its dependencies have a Standing, too. If a node has neither a result nor an
// Exclude, all nodes of the graph have a Standing.
type Standing struct {
	Key    cache.Key
	Action Action
	Reason string
	Result *cache.Meta // with Key and Digest only; nil: no result
}

// Origin says which of several sources a node's result comes from. Sources are tried in their order.
type Origin struct {
	Serves   string   `json:"serves"`             // the source; empty: the result is made here
	Reason   string   `json:"reason"`             // why it is made here
	Passed   []string `json:"passed_over"`        // sources before the one that serves; all if none serves
	Ancestor string   `json:"ancestor,omitempty"` // the ancestor that Serves was made from; "": the node's own revision
	Back     int      `json:"back,omitempty"`     // the number of commits back to Ancestor
}

// Exclude says that a node is not to be run, and why. The zero Exclude excludes nothing.
type Exclude struct {
	Action Action // Skip (declared) or Blocked (cannot run here)
	Reason string
	Never  bool // Blocked: no device of this machine can ever serve the node
}
