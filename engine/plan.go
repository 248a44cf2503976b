package engine

import (
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

	entry  cache.Meta // Cached: what is in the store
	stored bool       // entry is set
	twin   *Node      // Cached: the node of this plan that makes the same result first
}

// Stored is the entry that serves a cached step; false when there is none (its result is not needed, or a twin makes it).
func (s *Step) Stored() (cache.Meta, bool) { return s.entry, s.stored }

// Plan says for every node of a graph what is to be done and why: plain data that printing, JSON, tests and Apply read.
type Plan struct {
	Graph *Graph
	Steps []Step // in the order of Graph.Nodes
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
	GaveUp      map[cache.Key]cache.Attempt // failures that are not remembered, but not to be tried again either
}

// planner is a plan in the making. state says, for each node, what is known of its result.
type planner struct {
	PlanOptions
	plan  *Plan
	state []state
	first map[cache.Key]*Node // the node that will run for a key
}

type state uint8

const (
	missing  state = iota // no result; nothing against running it
	present               // in the store, or made by a twin
	failed                // remembered as failed
	excluded              // skip
	hindered              // blocked
)

// NewPlan decides for every node of the graph. It changes nothing.
func NewPlan(ctx context.Context, g *Graph, o PlanOptions) (*Plan, error) {
	p := &planner{
		PlanOptions: o,
		plan:        &Plan{Graph: g, Steps: make([]Step, len(g.nodes))},
		state:       make([]state, len(g.nodes)),
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
	for i := range p.plan.Steps {
		p.settle(ctx, &p.plan.Steps[i])
	}
	return p.plan, nil
}

// look finds out what is known of a node's result, knowing it of all that the node waits for.
func (p *planner) look(ctx context.Context, s *Step) error {
	n := s.Node
	d := describe(n, p.keyOf, p.endOf)
	s.Key, s.Text = d.Key(), d.Text()
	if n.Exclude.Action == Skip {
		s.Reason = n.Exclude.Reason
		p.state[n.id] = excluded
		return nil
	}
	forced := p.Replace != nil && p.Replace(n.Address)
	if !forced && p.settled(n) {
		if found, err := p.find(ctx, s); found || err != nil {
			return err
		}
	}
	if p.hinder(s) {
		return nil
	}
	if forced {
		s.Reason = "asked for by -replace"
	}
	return nil
}

// settled says that all the ends that are part of the node's key are known.
func (p *planner) settled(n *Node) bool {
	for _, dep := range n.After {
		if p.state[dep.id] == missing {
			return false
		}
	}
	return true
}

// find looks for the node's result: by key, then by content, then as a remembered failure.
func (p *planner) find(ctx context.Context, s *Step) (bool, error) {
	n := s.Node
	entry, err := p.Store.Get(ctx, s.Key, false)
	if err == nil {
		s.entry, s.stored, s.Reason = entry.Meta, true, "up to date"
		p.state[n.id] = present
		return true, nil
	}
	if !errors.Is(err, cache.ErrMiss) {
		return false, fmt.Errorf("%s: %w", n.Address, err)
	}
	if content, ok := p.contentKey(n); ok {
		if entry, err := p.Store.Find(ctx, content); err == nil {
			s.entry, s.stored = entry.Meta, true
			s.Reason = "up to date: what it needs was made anew and came out the same"
			p.state[n.id] = present
			return true, nil
		}
	}
	attempt, ok := p.GaveUp[s.Key]
	if !ok && !p.RetryFailed {
		attempt, ok = p.Journal.Failure(s.Key)
	}
	if ok {
		s.Failure = &attempt
		s.Reason = "failed before: " + attempt.Failure.Message + "; it runs again when an input changes, or with -retry-failed"
		p.state[n.id] = failed
		return true, nil
	}
	return false, nil
}

// contentKey is the second way to find a result: its own description and the digests of its inputs' bytes.
func (p *planner) contentKey(n *Node) (cache.Key, bool) {
	for _, dep := range n.Needs {
		if _, ok := p.plan.Steps[dep.id].Stored(); !ok {
			return cache.Key{}, false
		}
	}
	digestOf := func(dep *Node) string { return p.plan.Steps[dep.id].entry.Digest }
	return contentKey(n, digestOf, p.endOf), len(n.Needs) > 0
}

// hinder finds out whether something keeps the node from running.
func (p *planner) hinder(s *Step) bool {
	n := s.Node
	if n.Exclude.Action == Blocked {
		s.Reason, s.Never = n.Exclude.Reason, n.Exclude.Never
		p.state[n.id] = hindered
		return true
	}
	for _, dep := range slices.Concat(n.Needs, n.Order) {
		switch p.state[dep.id] {
		case excluded:
			s.Reason = fmt.Sprintf("needs %s, which is skipped: %s", dep.Address, p.plan.Steps[dep.id].Reason)
			p.state[n.id] = excluded
			return true
		case failed:
			s.Reason = fmt.Sprintf("needs %s, which failed before", dep.Address)
			p.state[n.id] = hindered
			return true
		case hindered:
			s.Reason = fmt.Sprintf("needs %s, which is blocked", dep.Address)
			s.Never = p.plan.Steps[dep.id].Never
			p.state[n.id] = hindered
			return true
		}
	}
	if p.Pool == nil {
		return false
	}
	if err := p.Pool.Fits(n.Resources); err != nil {
		s.Reason, s.Never = err.Error(), true
		p.state[n.id] = hindered
		return true
	}
	return false
}

// prune leaves out what is missing but not needed by anything that is wanted and will run.
func (p *planner) prune() {
	nodes := p.plan.Graph.nodes
	needed := make([]bool, len(nodes))
	for i := len(nodes) - 1; i >= 0; i-- {
		n, s := nodes[i], &p.plan.Steps[i]
		if p.plan.Graph.wanted[i] || s.Reason != "" && p.state[i] == missing {
			needed[i] = true
		}
		if needed[i] && p.state[i] == missing {
			s.Action = Run
			for _, dep := range slices.Concat(n.Needs, n.Order) {
				needed[dep.id] = true
			}
		}
		if needed[i] {
			for _, dep := range n.After {
				needed[dep.id] = true
			}
		}
	}
}

// settle gives the step its final action and reason.
func (p *planner) settle(ctx context.Context, s *Step) {
	n := s.Node
	switch p.state[n.id] {
	case present:
		s.Action = Cached
	case excluded:
		s.Action = Skip
	case failed, hindered:
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
		s.Action, s.Reason = Cached, "not in the store, and not needed: all that uses it is up to date"
		for _, id := range p.plan.Graph.users[n.id] {
			if st := p.state[id]; st == hindered || st == excluded || st == failed {
				s.Action, s.Reason = Skip, "not needed: what uses it cannot run"
			}
		}
		return
	}
	if twin, ok := p.first[s.Key]; ok && p.settled(n) {
		s.Action, s.twin = Cached, twin
		s.Reason = "the same work as " + twin.Address
		return
	}
	p.first[s.Key] = n
	if s.Reason == "" {
		s.Reason = p.why(ctx, s)
	}
}

func (p *planner) estimate(n *Node) time.Duration {
	if measured, ok := p.Journal.Estimate(n.Address); ok {
		return measured
	}
	return n.Estimate
}

func (p *planner) keyOf(n *Node) cache.Key { return p.plan.Steps[n.id].Key }

func (p *planner) endOf(n *Node) string {
	switch s := &p.plan.Steps[n.id]; p.state[n.id] {
	case present:
		return string(NodeDone)
	case failed:
		return endOfFailure(s.Failure.Failure)
	case excluded:
		return string(Skip)
	case hindered:
		return string(Blocked)
	}
	return "to be run"
}

// End says how a node stands by what is stored, without running anything.
func (p *Plan) End(ctx context.Context, store cache.Store, s *Step) (End, error) {
	e := End{Address: s.Node.Address, Action: s.Action, Reason: s.Reason, Never: s.Never}
	if s.Failure != nil {
		e.Failure = s.Failure.Failure
	}
	if !s.stored {
		return e, nil
	}
	entry, err := store.Get(ctx, s.entry.Key, false)
	e.Entry = entry
	return e, err
}
