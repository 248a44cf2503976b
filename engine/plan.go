package engine

import (
	"cmp"
	"context"
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
	Run     Action = "run"     // its result is missing, stale, or to be replaced
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

	entry    *cache.Meta // what is in the store, and stands unless the step is run; nil: nothing
	ended    bool        // well, once, so that it is known how it ends, although its result is lost
	without  bool        // what it comes after and is lost counts as what becomes of that now
	twin     *Node       // Cached: the node of this plan that makes the same result first
	forced   bool        // to be run whatever is stored
	follows  bool        // likewise, since something that went into it is run anew
	refused  bool        // to run it anew was asked for, and cannot be done
	through  bool        // Skip, Blocked: because of a node that it needs
	larger   bool        // Blocked: only because this machine is too small for the node, or for one that it needs
	unneeded bool        // Cached, Skip: there is no result, and nothing that is to be run would use it
	asked    *Asked      // what the store was asked for in vain; nil: nothing
	outdated bool        // there is a result, which was read from others than those that are stored now
	damage   string      // what is wrong with the result that was there; empty: nothing
	gone     string      // what is gone of the result that is in the store; empty: nothing
}

// Stored is the result that stands; false when there is none: it is to be made, is not needed, or a twin makes it.
func (s *Step) Stored() (cache.Meta, bool) {
	if s.entry == nil || s.Action == Run {
		return cache.Meta{}, false
	}
	return *s.entry, true
}

// Asked is what the store was asked for and did not have as a whole.
type Asked struct {
	Keys, Contents []cache.Key  // under which there is nothing
	Gone           []cache.Meta // what is there, and something of it that lay elsewhere is not
	Damaged        bool         // something was there, and was put out of the way
}

// Asked is what the store was asked for in vain, until there was a result or there was none.
func (s *Step) Asked() Asked {
	if s.asked == nil {
		return Asked{}
	}
	return *s.asked
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

// planner is a plan in the making.
//
// What is stored of a node is one thing: its result, its failure, or that it ended well although its result is lost. It does not
// depend on this machine, on what is asked for, or on what else is run. What becomes of the node is another: its state.
type planner struct {
	PlanOptions
	plan    *Plan
	state   []state
	idle    []bool              // whether all that uses the node is up to date without it
	without bool                // what is lost counts as what becomes of it now
	first   map[cache.Key]*Node // the node that will run for a key
	text    cache.Description   // of one node after the other
}

type state uint8

const (
	missing  state = iota // no result that stands; nothing against running it
	present               // in the store, or made by a twin
	faltered              // failed, and the next apply tries again
	held                  // blocked by such a failure
	failed                // failed for as long as its inputs stay
	stuck                 // blocked by such a failure
	hindered              // blocked in any case
	excluded              // skip
)

// afterFailure is the state of a node that failed.
func afterFailure(f *cache.Failure) state {
	if f.Class.Retried() {
		return faltered
	}
	return failed
}

func (s state) isFailure() bool { return s == faltered || s == failed }

func (s state) isBlocked() bool { return s == held || s == stuck || s == hindered }

// blocks is the state of what needs a node in this state, which is none of missing and present.
func (s state) blocks() state {
	switch s {
	case faltered, failed:
		return s + 1
	}
	return s
}

// NewPlan decides for every node of the graph. It changes nothing.
func NewPlan(ctx context.Context, g *Graph, o PlanOptions) (*Plan, error) {
	p := &planner{
		PlanOptions: o,
		plan:        &Plan{Graph: g, Steps: make([]Step, len(g.nodes)), options: o},
		state:       make([]state, len(g.nodes)),
		idle:        make([]bool, len(g.nodes)),
		first:       make(map[cache.Key]*Node),
	}
	if p.stood() {
		return p.plan, nil
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

// stood says whether everything stands, and fills in what is said of it then.
func (p *planner) stood() bool {
	nodes := p.plan.Graph.nodes
	if slices.ContainsFunc(nodes, func(n *Node) bool { return n.Standing == nil }) {
		return false
	}
	for i, n := range nodes {
		p.plan.Steps[i] = Step{Node: n, Action: n.Standing.Action, Reason: n.Standing.Reason, Key: n.Standing.Key, entry: n.Standing.Result}
	}
	return true
}

// look finds out what is stored of a node and what becomes of it, knowing that of all that the node waits for.
func (p *planner) look(ctx context.Context, s *Step) error {
	n := s.Node
	if n.Standing != nil {
		s.Key, s.Reason, s.entry = n.Standing.Key, n.Standing.Reason, n.Standing.Result
	} else {
		p.describe(s)
	}
	if n.Standing == nil && n.Exclude.Action != Skip {
		s.forced = p.Replace != nil && p.Replace(n.Address)
		if err := p.find(ctx, s); err != nil {
			return err
		}
	}
	p.resolve(s)
	return nil
}

// resolve decides what becomes of a node by what is stored of it: that stands, unless it is to be made anew and can be.
func (p *planner) resolve(s *Step) {
	if s.Node.Exclude.Action == Skip {
		s.Reason = s.Node.Exclude.Reason
		p.state[s.Node.id] = excluded
		return
	}
	stands := s.stands()
	again := stands.isFailure() && p.retries(s.Key)
	s.follows = p.madeAnew(s)
	s.refused, s.through, s.larger, s.Never = false, false, false, false
	if stands != missing && !s.forced && !s.follows && !again {
		p.state[s.Node.id] = stands
		return
	}
	h := p.hindrance(s.Node)
	p.state[s.Node.id] = h.state
	switch {
	case h.state == missing:
	case stands == missing:
		s.Reason, s.Never, s.through, s.larger = h.reason, h.never, h.through, h.larger
	default:
		p.state[s.Node.id], s.follows, s.refused = stands, false, s.forced || again
	}
}

// madeAnew says whether something that went into the node's result is made anew although it is up to date: its key stays, and what
// comes of it may be another result. What was lost comes out as good as it was, but for a node that only says what it reads.
func (p *planner) madeAnew(s *Step) bool {
	anew := func(dep *Node) bool {
		d := &p.plan.Steps[dep.id]
		return p.state[dep.id] == missing && (d.forced || d.follows || d.stands() != missing)
	}
	return slices.ContainsFunc(s.Node.Needs, anew) || slices.ContainsFunc(s.Node.After, anew) || p.rereads(s)
}

// rereads says whether a node only says what it read in something that was lost and is to be made anew.
func (p *planner) rereads(s *Step) bool {
	runs := func(dep *Node) bool { return p.plan.Steps[dep.id].Action == Run }
	return s.Node.Reads && s.stands() != missing && (slices.ContainsFunc(s.Node.Needs, runs) || slices.ContainsFunc(s.Node.After, runs))
}

// hindrance is what keeps a node from running; the zero hindrance is none.
type hindrance struct {
	state   state
	reason  string
	never   bool
	through bool // because of a node that it needs
	larger  bool // a larger machine could run it
}

// hindrance finds out whether something keeps the node from running: itself, this machine, or what it needs.
func (p *planner) hindrance(n *Node) hindrance {
	if n.Exclude.Action == Blocked {
		return hindrance{state: hindered, reason: n.Exclude.Reason, never: n.Exclude.Never}
	}
	if p.Pool != nil {
		if err := p.Pool.Fits(n.Resources); err != nil {
			return hindrance{state: hindered, reason: err.Error(), never: true, larger: true}
		}
	}
	if dep, as := n.hinderer(func(dep *Node) state { return p.state[dep.id] }); dep != nil {
		by := &p.plan.Steps[dep.id]
		return hindrance{as.blocks(), needsWhat(dep, as), by.Never, true, by.larger}
	}
	if n.Lacks != nil {
		if lacks := n.Lacks(); lacks != "" {
			return hindrance{state: hindered, reason: lacks}
		}
	}
	return hindrance{}
}

// hinderer finds, of what a node needs, what keeps it from running, and its state; nil when nothing does. What cannot run in any
// case comes first, then what failed and is not tried again, so that the reason does not depend on what has been tried so far.
func (n *Node) hinderer(stateOf func(*Node) state) (by *Node, as state) {
	for dep := range n.musts {
		if st := stateOf(dep); st > present && (by == nil || st > as.blocks()) {
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
		// A larger machine can run the node, and its user wants here what the node needs.
		prepares := needed[i] && p.state[i] == hindered && s.larger
		served := p.idle[i] || p.state[i] == present
		for dep := range n.musts {
			needed[dep.id] = needed[dep.id] || runs || prepares
			p.idle[dep.id] = p.idle[dep.id] && served
		}
		for _, dep := range n.After {
			needed[dep.id] = needed[dep.id] || needed[i] && p.state[i] != present && !p.state[i].isFailure()
			// That it is blocked is what its user is about, unless that is from before it was lost.
			about := p.state[dep.id].isBlocked() && (s.without || !p.lost(dep))
			p.idle[dep.id] = p.idle[dep.id] && served && !about
		}
	}
}

// follow resolves anew what was read from something that was lost and is to be made anew, and all that comes of that. It says
// whether there was any.
func (p *planner) follow() (found bool) {
	var changed []bool
	for i, n := range p.plan.Graph.nodes {
		s := &p.plan.Steps[i]
		concerned := p.rereads(s)
		if found {
			n.waits(func(dep *Node) bool { concerned = concerned || changed[dep.id]; return !concerned })
		}
		if !concerned {
			continue
		}
		state, follows := p.state[i], s.follows
		if p.resolve(s); p.state[i] == state && s.follows == follows {
			continue
		}
		if !found {
			found, changed = true, make([]bool, len(p.state))
		}
		changed[i] = true
	}
	return found
}

// settle gives the step its final action and reason.
func (p *planner) settle(ctx context.Context, s *Step) {
	n := s.Node
	if p.state[n.id] == missing && s.Action != Run {
		p.state[n.id] = s.stands() // nothing asks for another one
	}
	switch p.state[n.id] {
	case present:
		s.Action = Cached
		if s.refused {
			h := p.hindrance(n)
			s.Action, s.Reason, s.Never = Blocked, "asked for by -replace; "+h.reason+"; the result that is there stands", h.never
		}
	case excluded:
		s.Action = Skip
	case hindered, stuck, held:
		s.Action = Blocked
		if p.idle[n.id] {
			s.leaveOut(Cached, s.absence()+", and not needed: all that uses it is up to date")
		}
	case failed, faltered:
		s.Action = Blocked
		if s.refused {
			s.Reason = "failed before: " + s.Failure.Failure.Message + "; it cannot be tried again here: " + p.hindrance(n).reason
		}
	case missing:
		p.settleMissing(ctx, s)
	}
	if s.Action == Run {
		s.Failure, s.Estimate = nil, p.estimate(n)
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
		s.Reason = "asked for by -replace"
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

// End says how a node stands by what is stored, without running anything.
func (p *Plan) End(ctx context.Context, store cache.Store, s *Step) (End, error) {
	e := End{Address: s.Node.Address, Action: s.Action, Reason: s.Reason, Never: s.Never}
	if s.Failure != nil {
		e.Failure, e.Reason = s.Failure.Failure, s.Failure.Failure.Message
	}
	if _, stands := s.Stored(); !stands {
		return e, nil
	}
	entry, err := store.Get(ctx, s.entry.Key, false)
	e.Entry, e.Reason = entry, ""
	return e, err
}
