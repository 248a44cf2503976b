package engine

import (
	"context"
	"slices"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/cache/peek"
	"github.com/benchgraph/benchgraph/device"
)

// Plan has an action and a reason for every node of a graph. It is plain data for printing, JSON, tests and Apply.
type Plan struct {
	Graph *Graph
	Steps []Step // in the order of Graph.Nodes

	options PlanOptions
}

// Counts returns the number of steps by action.
func (p *Plan) Counts() map[Action]int {
	counts := map[Action]int{}
	for i := range p.Steps {
		counts[p.Steps[i].Action]++
	}
	return counts
}

// Step returns the step of the node with an address.
func (p *Plan) Step(address string) (*Step, bool) {
	if n, ok := p.Graph.Node(address); ok {
		return &p.Steps[n.id], true
	}
	return nil, false
}

// PlanOptions configure a plan.
type PlanOptions struct {
	Store       cache.Store
	Known       func(cache.Key) *cache.Meta // results that the store has, if it need not be asked; nil: none
	Journal     *journal.Journal
	Pool        device.Pool
	Replace     func(address string) bool     // selects nodes to run although they are up to date; nil: none
	RetryFailed bool                          // run failed and incomplete nodes again
	Incomplete  func(address string) bool     // selects nodes with a stored result, a part of which failed; nil: none
	AsIs        bool                          // keep failures that an apply would try again: for showing only
	GaveUp      map[cache.Key]journal.Attempt // failures that stand although the journal does not remember them
	Apart       bool                          // the addresses had other work before: reasons ignore that work
	Terms       Terms
}

// Terms are words of the program that uses the engine. Reasons and remedies of a plan and its apply contain them.
type Terms struct {
	Program     string // its name
	Replace     string // the option that Replace comes from
	RetryFailed string // the option that RetryFailed comes from
	DeviceWait  string // the option that ApplyOptions.DeviceWait comes from
	FreeSpace   string // the command that frees space on the disk of the store
	LostDevice  string // the remedy for a lost device
}

// planner is a plan in the making.
type planner struct {
	decider
	plan  *Plan
	idle  []bool              // by node: all users are up to date without the node
	first map[cache.Key]*Node // the node that runs for a key
	ahead int                 // all nodes before this one have a description
}

// NewPlan decides for every node of the graph. It changes nothing.
func NewPlan(ctx context.Context, g *Graph, o PlanOptions) (*Plan, error) {
	p := &planner{
		decider: decider{PlanOptions: o, steps: make([]Step, len(g.nodes))},
		idle:    make([]bool, len(g.nodes)),
		first:   make(map[cache.Key]*Node),
	}
	p.plan = &Plan{Graph: g, Steps: p.steps, options: o}
	if p.allStand() {
		return p.plan, nil
	}
	for i, n := range g.nodes {
		p.steps[i].Node = n
	}
	for i := range g.nodes {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if i == p.ahead {
			p.lookAhead(ctx)
		}
		if err := p.visit(ctx, &p.steps[i]); err != nil {
			return nil, err
		}
	}
	p.selectRuns()
	for p.decideReaders(ctx) {
		p.selectRuns()
	}
	for i := range p.steps {
		p.conclude(ctx, &p.steps[i])
	}
	return p.plan, context.Cause(ctx) // conditions of nodes that were asked when ctx ended gave no answer
}

// allStand reports whether all nodes have a Standing. If so, it fills in the steps.
func (p *planner) allStand() bool {
	nodes := p.plan.Graph.nodes
	if slices.ContainsFunc(nodes, func(n *Node) bool { return n.Standing == nil }) {
		return false
	}
	for i, n := range nodes {
		t := n.Standing
		p.steps[i] = Step{Node: n, Action: t.Action, Reason: t.Reason, Key: t.Key, found: found{entry: t.Result},
			state: stateStanding[t.Action]}
		if s := &p.steps[i]; s.Action == Blocked && p.remember(s) {
			s.state, s.Reason = s.outcome(), n.Standing.Reason
		}
	}
	return true
}

// stateStanding gives the states of nodes with a Standing and no failure.
var stateStanding = map[Action]state{Cached: present, Blocked: hindered, Skip: excluded}

// lookAhead describes the next nodes, up to the first one that depends on one of them, and asks the store for their
// results on all cores. A node with After is described alone: its key depends on ends that another lookup may find out.
func (p *planner) lookAhead(ctx context.Context) {
	from, alone := p.ahead, false
	var keys []cache.Key
	for ; p.ahead < len(p.steps) && !alone; p.ahead++ {
		s := &p.steps[p.ahead]
		alone = len(s.Node.After) > 0
		for dep := range s.Node.musts {
			alone = alone || dep.id >= from
		}
		if alone && p.ahead > from {
			break
		}
		if s.Node.Standing == nil {
			p.describe(s)
			if !alone && s.Node.Exclude.Action != Skip && (p.Known == nil || p.Known(s.Key) == nil) {
				keys = append(keys, s.Key)
			}
		}
	}
	p.answers = peek.Ahead(ctx, p.Store, keys)
}

// visit looks up the outcome of a node and decides its state. All dependencies were visited before.
func (p *planner) visit(ctx context.Context, s *Step) error {
	if t := s.Node.Standing; t != nil {
		s.Key, s.Reason, s.found.entry = t.Key, t.Reason, t.Result
	} else if s.Node.Exclude.Action != Skip {
		if err := p.lookUp(ctx, s); err != nil {
			return err
		}
	}
	p.decide(ctx, s)
	return nil
}

// selectRuns sets the action Run for missing nodes that are wanted or used by a node that is run.
func (p *planner) selectRuns() {
	nodes := p.plan.Graph.nodes
	needed := make([]bool, len(nodes))
	for i := range nodes {
		p.idle[i] = !p.plan.Graph.wanted[i]
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		n, s := nodes[i], &p.steps[i]
		needed[i] = needed[i] || p.plan.Graph.wanted[i] || s.renews()
		runs := needed[i] && s.state == missing
		if runs {
			s.Action = Run
		}
		// A larger machine can run the node, and its user wants the dependencies made on this machine.
		prepares := needed[i] && s.state == hindered && s.obstacle.larger
		served := p.idle[i] || s.state == present
		for dep := range n.musts {
			needed[dep.id] = needed[dep.id] || runs || prepares
			p.idle[dep.id] = p.idle[dep.id] && served
		}
		for _, dep := range n.After {
			of := p.step(dep)
			needed[dep.id] = needed[dep.id] || needed[i] && s.state != present && !s.state.isFailure()
			// A user reports its blocked dependency, unless the user's result is older than the eviction.
			reported := of.state.isBlocked() && (s.found.ignoreEvicted || !of.evicted())
			p.idle[dep.id] = p.idle[dep.id] && served && !reported
		}
	}
}

// decideReaders decides again for nodes that only read results, if one of these results was evicted and is made again,
// and for all nodes that this changes. It reports whether any node changed.
func (p *planner) decideReaders(ctx context.Context) (found bool) {
	var changed []bool
	for i, n := range p.plan.Graph.nodes {
		s := &p.steps[i]
		concerned := p.rereads(s)
		if found {
			n.waits(func(dep *Node) bool { concerned = concerned || changed[dep.id]; return !concerned })
		}
		if !concerned {
			continue
		}
		state, redo := s.state, s.redo
		if p.decide(ctx, s); s.state == state && s.redo == redo {
			continue
		}
		if !found {
			found, changed = true, make([]bool, len(p.steps))
		}
		changed[i] = true
	}
	return found
}

// conclude gives a step its final action and reason.
func (p *planner) conclude(ctx context.Context, s *Step) {
	if s.state == missing && s.Action != Run {
		s.state = s.outcome() // no node needs another outcome
	}
	switch {
	case s.state == missing && s.Action == Run:
		p.concludeRun(ctx, s)
	case s.state == missing:
		if p.idle[s.Node.id] {
			s.leaveOut(Cached)
		} else {
			s.leaveOut(Skip)
		}
	case s.state.isBlocked() && p.idle[s.Node.id]:
		s.leaveOut(Cached)
	case s.refused():
		s.Action, s.Never = Blocked, s.obstacle.never && s.state == present
		if s.state == present {
			s.Reason = p.askedBy(s) + "; " + s.obstacle.reason + "; the result that is there stands"
		} else {
			s.Reason = "failed before: " + s.Failure.Failure.Message +
				"; it cannot be tried again here: " + s.obstacle.reason
		}
	case s.state == present:
		s.Action = Cached
	case s.state == excluded:
		s.Action = Skip
	default:
		s.Action = Blocked
	}
}

// concludeRun gives a step that is to be run its reason, or has it share the result of another step with the same key.
func (p *planner) concludeRun(ctx context.Context, s *Step) {
	twin, shared := p.first[s.Key]
	switch {
	case s.renews():
		s.Reason = p.askedBy(s)
	case shared && p.settled(s.Node):
		s.Action, s.found.twin = Cached, twin
		s.Reason = "the same work as " + twin.Address
		return
	default:
		p.first[s.Key] = s.Node
		s.Reason = p.whyMissing(ctx, s)
	}
	s.Failure, s.Estimate = nil, p.estimate(s.Node)
}

// askedBy is the reason of a node that the user wants to run although it has a result.
func (p *planner) askedBy(s *Step) string {
	return "asked for by " + map[redo]string{replace: p.Terms.Replace, retry: p.Terms.RetryFailed}[s.redo]
}

// leaveOut leaves out a node without a result that no node needs.
func (s *Step) leaveOut(as Action) {
	s.state, s.Action, s.Never, s.obstacle = unneeded, as, false, obstacle{}
	s.Reason = "not needed: no node that is to run uses it"
	if as == Cached {
		s.Reason = s.absence() + ", and not needed: all that uses it is up to date"
	}
}

// whyMissing returns in one sentence why a node has no result that stands, such as the difference between its last
// description and this one.
func (p *planner) whyMissing(ctx context.Context, s *Step) string {
	if s.found.damage != "" || s.found.gone != "" {
		return s.absence()
	}
	for _, dep := range s.Node.Needs {
		if p.step(dep).Action == Run {
			return "needs " + dep.Address + ", which is to be run"
		}
	}
	for _, dep := range s.Node.After {
		if p.step(dep).Action == Run {
			return "comes after " + dep.Address + ", which is to be run"
		}
	}
	for _, last := range slices.Backward(p.Journal.Attempts(s.Node.Address)) {
		if last.Interrupted() && last.Key == s.Key {
			return "its last attempt was interrupted"
		}
		if last.Failure != nil && last.Key == s.Key {
			return "its last attempt failed: " + last.Failure.Message
		}
		if last.Key == s.Key {
			return "its result is no longer in the store"
		}
		if old, err := peek.Get(ctx, p.Store, last.Key); !p.Apart && err == nil && old.Dir != "" {
			return cache.Explain(old.Text, s.Text)
		}
	}
	return "no result yet"
}

// estimate returns how long a node will run: its last duration, or the declared one, or the usual one of its kind.
func (p *planner) estimate(n *Node) time.Duration {
	measured, own := p.Journal.Estimate(n.Address)
	if n.Estimate > 0 && !own {
		return n.Estimate
	}
	return measured
}

// End returns how a node ended, from what is stored. It runs nothing.
func (p *Plan) End(ctx context.Context, store cache.Store, s *Step) (End, error) {
	e := End{Address: s.Node.Address, Action: s.Action, Reason: s.Reason, Never: s.Never}
	if s.Failure != nil {
		e.Failure, e.Reason = s.Failure.Failure, s.Failure.Failure.Message
	}
	if _, stands := s.Stored(); !stands {
		return e, nil
	}
	entry, err := store.Get(ctx, s.found.entry.Key, false)
	e.Entry, e.Reason = entry, ""
	return e, err
}
