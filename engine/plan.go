package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
)

// Action is what a plan does with a node.
type Action string

// The actions. A node that is neither up to date nor wanted is Cached when its users are up to date without it, and
// Skip when nothing that could use it can run.
const (
	Run     Action = "run"     // its result is missing or stale
	Cached  Action = "cached"  // its result is in the store, or nothing needs it
	Skip    Action = "skip"    // declared not to be run
	Blocked Action = "blocked" // cannot be run: it failed before, lacks something, or needs a node that does
)

// Step is what a plan says of one node.
type Step struct {
	Node     *Node
	Action   Action
	Reason   string
	Key      cache.Key      // provisional while something in Node.After is still to be run
	Text     string         // the description that Key was made from
	Estimate time.Duration  // of a run; 0: unknown
	Failure  *cache.Attempt // Blocked: the remembered failure of the node itself
	Never    bool           // Blocked: no device of this machine can ever serve it

	entry    *cache.Meta // Cached: what is in the store; nil: nothing
	twin     *Node       // Cached: the node of this plan that makes the same result first
	forced   bool        // Run: although its result is there
	follows  bool        // Run: although its result is there, since something that went into it is run anew
	through  bool        // Skip, Blocked: because of a node that it needs
	unneeded bool        // Cached, Skip: there is no result, and nothing that is to be run would use it
	damage   string      // what is wrong with the result that was there; empty: nothing
	gone     string      // what is gone of the result that is in the store; empty: nothing
}

// Stored is the entry that serves a cached step; false when there is none (its result is not needed, or a twin makes it).
func (s *Step) Stored() (cache.Meta, bool) {
	if s.entry == nil {
		return cache.Meta{}, false
	}
	return *s.entry, true
}

// Plan says for every node of a graph what is to be done and why: plain data that printing, JSON, tests and Apply read.
type Plan struct {
	Graph *Graph
	Steps []Step // in the order of Graph.Nodes

	options PlanOptions
}

// Counts counts the steps by action.
func (p *Plan) Counts() map[Action]int {
	counts := map[Action]int{}
	for i := range p.Steps {
		counts[p.Steps[i].Action]++
	}
	return counts
}

// Step finds what the plan says of an address.
func (p *Plan) Step(address string) (*Step, bool) {
	n, ok := p.Graph.Node(address)
	if !ok {
		return nil, false
	}
	return &p.Steps[n.id], true
}

// PlanOptions are what a plan looks at.
type PlanOptions struct {
	Store       cache.Store
	Journal     *cache.Journal
	Pool        device.Pool
	Replace     func(address string) bool   // run these although they are up to date; nil: none
	RetryFailed bool                        // run again what is remembered as failed
	AsIs        bool                        // failures that would be tried again stand, too: for showing, not for applying
	GaveUp      map[cache.Key]cache.Attempt // failures that are not remembered, but not to be tried again either
}

// planner is a plan in the making. state says, for each node, what is known of its result.
type planner struct {
	PlanOptions
	plan   *Plan
	state  []state
	idle   []bool              // whether all that uses the node is up to date without it
	proven []bool              // by node: something that was made from its result is there, so that it did not fail, whatever became of it
	first  map[cache.Key]*Node // the node that will run for a key
	text   cache.Description   // of one node after the other
}

type state uint8

const (
	missing  state = iota // no result; nothing against running it
	present               // in the store, or made by a twin
	failed                // remembered as failed
	stuck                 // blocked by a failure
	hindered              // blocked in any case
	excluded              // skip
)

// NewPlan decides for every node of the graph. It changes nothing.
func NewPlan(ctx context.Context, g *Graph, o PlanOptions) (*Plan, error) {
	p := &planner{
		PlanOptions: o,
		plan:        &Plan{Graph: g, Steps: make([]Step, len(g.nodes)), options: o},
		state:       make([]state, len(g.nodes)),
		idle:        make([]bool, len(g.nodes)),
		proven:      make([]bool, len(g.nodes)),
		first:       make(map[cache.Key]*Node),
	}
	for i, n := range g.nodes {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		step := &p.plan.Steps[i]
		step.Node = n
		if err := p.look(ctx, step); err != nil {
			return nil, err
		}
	}
	p.prune()
	for p.follow() {
		p.prune()
	}
	for i := range p.plan.Steps {
		p.settle(ctx, &p.plan.Steps[i])
	}
	return p.plan, nil
}

// look finds out what is known of a node's result, knowing it of all that the node waits for.
func (p *planner) look(ctx context.Context, s *Step) error {
	n := s.Node
	if n.Standing != nil {
		s.Key, s.Reason = n.Standing.Key, n.Standing.Reason
	} else {
		describe(&p.text, n, p)
		s.Key, s.Text = p.text.Key(), p.text.Text()
	}
	if n.Exclude.Action == Skip {
		s.Reason = n.Exclude.Reason
		p.state[n.id] = excluded
		return nil
	}
	if n.Standing != nil {
		s.entry = n.Standing.Result
		p.state[n.id] = present
		return nil
	}
	s.forced = p.Replace != nil && p.Replace(n.Address)
	s.follows = p.replaced(n)
	if !s.forced && !s.follows && p.settled(n) {
		if found, err := p.find(ctx, s); found || err != nil {
			return err
		}
	}
	if s.forced {
		s.Reason = "asked for by -replace"
	}
	p.hinder(s)
	return nil
}

// replaced says whether something that went into the node's result is run anew although it is up to date: its key stays,
// and what comes of it may be another result.
func (p *planner) replaced(n *Node) bool {
	for _, list := range [...][]*Node{n.Needs, n.After} {
		for _, dep := range list {
			if s := &p.plan.Steps[dep.id]; s.forced || s.follows {
				return true
			}
		}
	}
	return false
}

// settled says that all the ends that are part of the node's key are known.
func (p *planner) settled(n *Node) bool {
	for _, dep := range n.After {
		if p.state[dep.id] == missing && !p.proven[dep.id] {
			return false
		}
	}
	return true
}

// find looks for the node's result: by key, then by content, then as a remembered failure.
func (p *planner) find(ctx context.Context, s *Step) (bool, error) {
	n := s.Node
	found, err := p.take(ctx, s, upToDate, func() (cache.Entry, error) { return p.Store.Get(ctx, s.Key, false) })
	if !found && err == nil && p.allStored(n) {
		found, err = p.take(ctx, s, sameContent, func() (cache.Entry, error) { return p.Store.Find(ctx, contentKey(&p.text, n, p)) })
	}
	if found || err != nil {
		return found, err
	}
	if attempt, reason, ok := p.remembered(n.Address, s.Key); ok {
		s.Failure, s.Reason = &attempt, reason
		p.state[n.id] = failed
		return true, nil
	}
	return false, nil
}

// take asks the store and takes what it has, if it is whole, as the node's result.
func (p *planner) take(ctx context.Context, s *Step, reason string, ask func() (cache.Entry, error)) (bool, error) {
	n := s.Node
	entry, err := ask()
	if err == nil {
		s.gone, err = n.kept(ctx, entry)
		if err == nil && s.gone == "" {
			s.entry, s.Reason = &entry.Meta, reason
			p.state[n.id] = present
			if reason == upToDate {
				for _, dep := range n.Needs {
					p.proven[dep.id] = true
				}
			}
			return true, nil
		}
	}
	switch {
	case errors.Is(err, cache.ErrDamaged):
		s.damage = err.Error() // the store tells it once: the entry is out of the way now
	case err != nil && !errors.Is(err, cache.ErrMiss):
		return false, fmt.Errorf("%s: %w", n.Address, err)
	}
	return false, nil
}

// The reasons of nodes that were found by their keys and by their contents.
const (
	upToDate    = "up to date"
	sameContent = "up to date: what it needs was made anew and came out the same"
)

// allStored says that the bytes of all inputs of a node are known, and that there are some: without any, its content
// key says no more than its key.
func (p *planner) allStored(n *Node) bool {
	for _, dep := range n.Needs {
		if p.state[dep.id] != present {
			return false
		}
	}
	return len(n.Needs)+len(n.After) > 0
}

// hinder finds out whether something keeps the node from running: itself, this machine, or what it needs.
func (p *planner) hinder(s *Step) {
	n := s.Node
	if n.Exclude.Action == Blocked {
		s.Reason, s.Never = n.Exclude.Reason, n.Exclude.Never
		p.state[n.id] = hindered
		return
	}
	if p.Pool != nil {
		if err := p.Pool.Fits(n.Resources); err != nil {
			s.Reason, s.Never = err.Error(), true
			p.state[n.id] = hindered
			return
		}
	}
	dep, as := n.hinderer(func(dep *Node) state { return p.state[dep.id] })
	if dep != nil {
		s.Reason, s.Never, s.through = hindrance(dep, as), p.plan.Steps[dep.id].Never, true
		p.state[n.id] = max(as, stuck)
		return
	}
	if n.Lacks != nil {
		if lacks := n.Lacks(); lacks != "" {
			s.Reason = lacks
			p.state[n.id] = hindered
		}
	}
}

// hinderer finds, of what a node needs, what keeps it from running, and its state; nil when nothing does. What cannot
// run in any case comes before what failed, so that the reason does not depend on what has been tried so far.
func (n *Node) hinderer(stateOf func(*Node) state) (by *Node, as state) {
	for dep := range n.musts {
		if st := stateOf(dep); st > present && (by == nil || st > max(as, stuck)) {
			by, as = dep, st
		}
	}
	return by, as
}

// prune finds out what is to be run: what is missing, and wanted or used by something that is to be run.
func (p *planner) prune() {
	nodes := p.plan.Graph.nodes
	needed := make([]bool, len(nodes))
	for i := range nodes {
		p.idle[i] = !p.plan.Graph.wanted[i]
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		n, s := nodes[i], &p.plan.Steps[i]
		needed[i] = needed[i] || p.plan.Graph.wanted[i] || s.forced
		runs := needed[i] && p.state[i] == missing
		if runs {
			s.Action = Run
		}
		served := p.idle[i] || p.state[i] == present
		for dep := range n.musts {
			needed[dep.id] = needed[dep.id] || runs
			p.idle[dep.id] = p.idle[dep.id] && served
		}
		for _, dep := range n.After {
			needed[dep.id] = needed[dep.id] || needed[i] && p.state[i] != present
			// That it is blocked is what its user is about.
			p.idle[dep.id] = p.idle[dep.id] && served && p.state[dep.id] != hindered && p.state[dep.id] != stuck
		}
	}
}

// follow finds results that are there, but may not say any more what they were read from, because that was lost and is to
// be made anew. They follow, with all that comes of them. It says whether there were any.
func (p *planner) follow() (found bool) {
	for i, n := range p.plan.Graph.nodes {
		s := &p.plan.Steps[i]
		if p.state[i] != present || n.Standing != nil {
			continue
		}
		anew := n.Reads && slices.ContainsFunc(n.Needs, func(dep *Node) bool { return p.plan.Steps[dep.id].Action == Run })
		if anew || p.replaced(n) {
			s.follows, s.entry, s.Reason = true, nil, ""
			p.state[i], found = missing, true
			p.hinder(s)
		}
	}
	return found
}

// settle gives the step its final action and reason.
func (p *planner) settle(ctx context.Context, s *Step) {
	n := s.Node
	switch p.state[n.id] {
	case present:
		s.Action = Cached
	case excluded:
		s.Action = Skip
	case hindered, stuck:
		s.Action = Blocked
		if p.idle[n.id] {
			s.leaveOut(Cached, s.absence()+", and not needed: all that uses it is up to date")
		}
	case failed:
		s.Action = Blocked
	case missing:
		p.settleMissing(ctx, s)
	}
	if s.Action == Run {
		s.Estimate = p.estimate(n)
	}
}

func (p *planner) settleMissing(ctx context.Context, s *Step) {
	n := s.Node
	if s.Action != Run {
		if p.idle[n.id] {
			s.leaveOut(Cached, s.absence()+", and not needed: all that uses it is up to date")
		} else {
			s.leaveOut(Skip, "not needed: what uses it cannot run")
		}
		return
	}
	if s.forced {
		return
	}
	if twin, ok := p.first[s.Key]; ok && p.settled(n) {
		s.Action, s.twin = Cached, twin
		s.Reason = "the same work as " + twin.Address
		return
	}
	p.first[s.Key] = n
	s.Reason = p.why(ctx, s)
}

// absence says why a node that ran before has no result.
func (s *Step) absence() string {
	if s.damage != "" {
		return "its result is damaged: " + s.damage
	}
	return cmp.Or(s.gone, "not in the store")
}

func (s *Step) leaveOut(as Action, reason string) {
	s.Action, s.Reason, s.Never, s.unneeded = as, reason, false, true
}

// estimate is how long a run takes: as it did, else as its file says, else as its kin did.
func (p *planner) estimate(n *Node) time.Duration {
	measured, own := p.Journal.Estimate(n.Address)
	if n.Estimate > 0 && !own {
		return n.Estimate
	}
	return measured
}

func (p *planner) keyOf(n *Node) cache.Key { return p.plan.Steps[n.id].Key }
func (p *planner) digestOf(n *Node) string { return digestOf(p.plan.Steps[n.id].entry) }

func (p *planner) endOf(n *Node) string {
	switch s := &p.plan.Steps[n.id]; p.state[n.id] {
	case present:
		return string(NodeDone)
	case missing:
		if p.proven[n.id] {
			return string(NodeDone)
		}
	case failed:
		return endOfFailure(s.Failure.Failure)
	case excluded:
		return endOfHindered(Skip, s.Reason, s.Never)
	case hindered, stuck:
		return endOfHindered(Blocked, s.Reason, s.Never)
	}
	return endUnknown
}

// End says how a node stands by what is stored, without running anything.
func (p *Plan) End(ctx context.Context, store cache.Store, s *Step) (End, error) {
	e := End{Address: s.Node.Address, Action: s.Action, Reason: s.Reason, Never: s.Never}
	if s.Failure != nil {
		e.Failure, e.Reason = s.Failure.Failure, s.Failure.Failure.Message
	}
	if s.entry == nil {
		return e, nil
	}
	entry, err := store.Get(ctx, s.entry.Key, false)
	e.Entry, e.Reason = entry, ""
	return e, err
}
