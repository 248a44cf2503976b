package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/peek"
)

// decider decides whether nodes are up to date. No other code decides that: a plan asks it for every node in the order
// of the graph, and an apply asks it again for a node whose dependencies have all ended.
type decider struct {
	PlanOptions
	steps         []Step // of the plan, or of the apply
	applying      bool   // in an apply: dependencies have ended, and the plan has checked machine and file
	ignoreEvicted bool   // use the present state of evicted dependencies instead of done
	text          cache.Description
	answers       peek.Answers // from the store, for results that are looked up next
}

func (d *decider) step(n *Node) *Step { return &d.steps[n.id] }

// decide sets the state of a step, whose dependencies have a state and whose outcome was looked up. There are four
// things it considers:
//
//  1. The file may exclude the node. Then it is skipped.
//  2. The store may have a result of the node, or the journal a failure.
//  3. That outcome may have to be made again: because the user asks for it, or because something that went into it is
//     made anew. If not, the outcome stands.
//  4. Something may keep the node from running: the file, this machine, or a dependency. Then an outcome stands all
//     the same, and a node without one is blocked.
//
// If none of them settles the matter, the node is missing, and is run if it is wanted.
func (d *decider) decide(ctx context.Context, s *Step) {
	s.obstacle, s.Never = obstacle{}, false
	if s.Node.Exclude.Action == Skip {
		s.state, s.Reason = excluded, s.Node.Exclude.Reason
		return
	}
	outcome := s.outcome()
	if !d.applying {
		if s.redo = d.asksRedo(s); !s.renews() && d.inputsMadeAnew(s) {
			s.redo = follow
		}
	}
	if outcome != missing && s.redo == keep {
		s.state = outcome
		return
	}
	s.obstacle = d.findObstacle(ctx, s.Node)
	switch {
	case s.obstacle.state == missing:
		s.state = missing
	case outcome == missing:
		s.state, s.Reason, s.Never = s.obstacle.state, s.obstacle.reason, s.obstacle.never
	default:
		s.state, s.redo = outcome, d.asksRedo(s)
	}
}

// asksRedo returns why the user wants a node to run although it may have an outcome.
func (d *decider) asksRedo(s *Step) redo {
	selected := func(by func(string) bool) bool { return s.Node.Standing == nil && by != nil && by(s.Node.Address) }
	_, gaveUp := d.GaveUp[s.Key]
	switch outcome := s.outcome(); {
	case selected(d.Replace):
		return replace
	case d.RetryFailed && (outcome.isFailure() && !gaveUp || outcome == present && selected(d.Incomplete)):
		return retry
	}
	return keep
}

// inputsMadeAnew reports whether an input of an up-to-date node is made again: the node's key stays the same, but its
// result may change. An evicted input that is made again matters only to nodes that read results.
func (d *decider) inputsMadeAnew(s *Step) bool {
	anew := func(dep *Node) bool {
		of := d.step(dep)
		return of.state == missing && (of.redo != keep || of.outcome() != missing)
	}
	return slices.ContainsFunc(s.Node.Needs, anew) || slices.ContainsFunc(s.Node.After, anew) || d.rereads(s)
}

// rereads reports whether a node only reads results, one of which was evicted and is made anew.
func (d *decider) rereads(s *Step) bool {
	runs := func(dep *Node) bool { return d.step(dep).Action == Run }
	return s.Node.Reads && s.outcome() != missing &&
		(slices.ContainsFunc(s.Node.Needs, runs) || slices.ContainsFunc(s.Node.After, runs))
}

// findObstacle returns the obstacle to a run of a node: the node itself, this machine, or a dependency. An apply checks
// only dependencies and their results, since the plan has checked the rest.
func (d *decider) findObstacle(ctx context.Context, n *Node) obstacle {
	if !d.applying {
		if n.Exclude.Action == Blocked {
			return obstacle{state: hindered, reason: n.Exclude.Reason, never: n.Exclude.Never}
		}
		if d.Pool != nil {
			if err := d.Pool.Fits(n.Resources); err != nil {
				return obstacle{state: hindered, reason: err.Error(), never: true, larger: true}
			}
		}
	}
	if by := d.hinderer(n); by != nil {
		return obstacle{
			state: by.state.user(), reason: needsWhat(by), never: by.Never, larger: by.obstacle.larger, by: by.Node,
		}
	}
	why := d.unfit(ctx, n)
	if why == "" && !d.applying && n.Lacks != nil {
		why = n.Lacks(ctx)
	}
	if why != "" {
		return obstacle{state: hindered, reason: why}
	}
	return obstacle{}
}

// unfit asks a node about the results of its dependencies that stand.
func (d *decider) unfit(ctx context.Context, n *Node) string {
	if n.Unfit == nil {
		return ""
	}
	results := make(map[string]cache.Key, len(n.Needs))
	for _, dep := range n.Needs {
		if s := d.step(dep); s.state == present && s.found.entry != nil {
			results[dep.Address] = s.found.entry.Key
		}
	}
	return n.Unfit(ctx, results)
}

// hinderer returns the dependency that keeps a node from running; nil if there is none. Dependencies that can never run
// come before failed ones, so that the reason does not depend on which attempts were made so far.
func (d *decider) hinderer(n *Node) (by *Step) {
	for dep := range n.musts {
		if s := d.step(dep); s.state.hinders() && (by == nil || s.state > by.state.user()) {
			by = s
		}
	}
	return by
}

// needsWhat is the reason of a node that cannot run because of a dependency.
func needsWhat(dep *Step) string {
	how := "is blocked"
	switch {
	case dep.state.isFailure():
		how = "failed"
	case dep.state == excluded:
		how = "is skipped"
	}
	return "needs " + dep.Node.Address + ", which " + how
}

// lookUp finds the outcome of a node for a plan. A dependency whose result was evicted counts as done. If there is no
// outcome under that key, lookUp looks again as if the dependency had never finished.
func (d *decider) lookUp(ctx context.Context, s *Step) error {
	if !d.settled(s.Node) {
		return nil
	}
	found, err := d.lookUpKey(ctx, s)
	if found || err != nil {
		return err
	}
	s.found.succeeded = s.found.succeeded || d.succeeded(s)
	evicted := func(dep *Node) bool { return d.step(dep).evicted() }
	if !slices.ContainsFunc(s.Node.After, evicted) {
		return nil
	}
	d.ignoreEvicted = true
	if d.settled(s.Node) {
		d.describe(s)
		s.found.ignoreEvicted, err = d.lookUpKey(ctx, s)
	}
	d.ignoreEvicted = false
	if !s.found.ignoreEvicted {
		d.describe(s)
	}
	return err
}

// settled reports whether the ends of all nodes in After, which are part of the node's key, are known.
func (d *decider) settled(n *Node) bool {
	for _, dep := range n.After {
		if s := d.step(dep); s.state == missing && s.outcome() == missing && (d.ignoreEvicted || !s.evicted()) {
			return false
		}
	}
	return true
}

// lookUpKey looks for the outcome of a node in three places: the result under its key, the result under its content
// key, and the remembered failure of its key.
func (d *decider) lookUpKey(ctx context.Context, s *Step) (found bool, err error) {
	found, err = d.take(ctx, s, upToDate)
	own := found
	if !found && err == nil && d.allStored(s.Node) {
		found, err = d.take(ctx, s, sameContent)
	}
	if err != nil {
		return false, err
	}
	if !found {
		found = d.remember(s)
		own = found
	}
	if own { // the outcome was made with the results of all dependencies
		for _, dep := range s.Node.Needs {
			d.step(dep).found.succeeded = true
		}
	}
	return found, nil
}

// lookUpAgain finds the outcome of a node for an apply that is about to run it: the ends and the contents of its
// dependencies are known now. moved is true if the key is not that of the plan.
func (d *decider) lookUpAgain(ctx context.Context, s *Step, moved bool) (found bool, err error) {
	if s.renews() {
		return false, nil
	}
	if moved && s.redo != follow {
		found, err = d.take(ctx, s, sameEnds)
	}
	if !found && err == nil && d.newContent(s.Node) {
		found, err = d.take(ctx, s, sameContent)
	}
	if !found && err == nil && moved {
		found = d.remember(s)
	}
	if found {
		s.redo = keep
	}
	return found, err
}

// newContent reports whether the contents of all inputs of a node are known, and were not known to the plan.
func (d *decider) newContent(n *Node) bool {
	for _, dep := range n.Needs {
		if d.step(dep).state != present {
			return false
		}
	}
	made := func(dep *Node) bool { s := d.step(dep); return s.Action == Run || s.found.twin != nil }
	return slices.ContainsFunc(n.Needs, made) || slices.ContainsFunc(n.After, made)
}

// The reasons of nodes that have a result: under their keys, under their content keys, and under keys that an apply
// found out.
const (
	upToDate    = "up to date"
	sameContent = "up to date: what it needs was made anew and came out the same"
	sameEnds    = "up to date: what it comes after ended as before"
	madeByOther = "up to date: another apply has made it"
)

// take asks the store for the result of a node, by content key if the reason is sameContent, else by key. It accepts
// the entry if it is whole and current. Otherwise it notes what it found.
func (d *decider) take(ctx context.Context, s *Step, reason string) (bool, error) {
	if reason == upToDate && d.Known != nil {
		if m := d.Known(s.Key); m != nil {
			s.found.entry, s.Reason = m, reason
			return true, nil
		}
	}
	key, ask := s.Key, func(key cache.Key) (cache.Entry, error) { return d.answers.Get(ctx, d.Store, key) }
	if reason == sameContent {
		key = d.contentKey(s.Node)
		ask = func(key cache.Key) (cache.Entry, error) { return peek.Find(ctx, d.Store, key) }
	}
	entry, err := ask(key)
	if err == nil {
		s.found.gone, err = s.Node.kept(ctx, entry)
		entry.Transcript = "" // a plan needs none
		if err == nil && s.found.gone == "" && d.outdated(s.Node, &entry.Meta) {
			s.found.outdated, s.found.gone = true, "what it says was read from a result that was made anew since"
		}
		if err == nil && s.found.gone == "" {
			if s.found.entry, s.Reason = &entry.Meta, reason; entry.Dir == "" {
				s.Reason += " (in the shared store)"
			}
			return true, nil
		}
	}
	if s.found.asked == nil {
		s.found.asked = &Asked{}
	}
	asked := s.found.asked
	switch {
	case err == nil:
		asked.Gone = append(asked.Gone, entry.Meta)
	case errors.Is(err, cache.ErrDamaged):
		asked.Damaged = true
		s.found.damage = err.Error() // the store reports the damage once: it has removed the entry
	case !errors.Is(err, cache.ErrMiss):
		return false, fmt.Errorf("%s: %w", s.Node.Address, err)
	case reason == sameContent:
		asked.Contents = append(asked.Contents, key)
	default:
		asked.Keys = append(asked.Keys, key)
	}
	return false, nil
}

// outdated reports whether an entry of a node that only reads results was read from results that were replaced since:
// the last apply ended before it read them again. A dependency that failed then has its failure.
func (d *decider) outdated(n *Node, m *cache.Meta) bool {
	if !n.Reads || m.Content.IsZero() {
		return false
	}
	outdated := func(dep *Node) bool { return d.step(dep).found.outdated && d.step(dep).Failure == nil }
	if slices.ContainsFunc(n.Needs, outdated) || slices.ContainsFunc(n.After, outdated) {
		return true
	}
	evicted := func(dep *Node) bool { return d.step(dep).evicted() }
	return d.allStored(n) && !slices.ContainsFunc(n.After, evicted) && d.contentKey(n) != m.Content
}

// allStored reports whether a node has inputs and the store has all of them. For a node without inputs, the content key
// would add nothing to the key.
func (d *decider) allStored(n *Node) bool {
	for _, dep := range n.Needs {
		if d.step(dep).found.entry == nil {
			return false
		}
	}
	return len(n.Needs)+len(n.After) > 0
}

// remember takes the failure of the node's key that keeps the node from running again. It reports false if there is
// none.
func (d *decider) remember(s *Step) bool {
	attempt, gaveUp := d.GaveUp[s.Key]
	if gaveUp {
		s.Failure, s.Reason = &attempt, "gave up: "+attempt.Failure.Message
		return true
	}
	if attempt, ok := d.Journal.Failure(s.Key); ok {
		s.Failure = &attempt
		s.Reason = "failed before: " + attempt.Failure.Message +
			"; it runs again when an input changes, or with " + d.Terms.RetryFailed
		return true
	}
	if d.AsIs { // of any class; if the last attempt succeeded, its result was evicted
		if attempt, ok := d.Journal.Last(s.Node.Address, s.Key); ok && attempt.Failure != nil {
			s.Failure = &attempt
			s.Reason = "failed: " + attempt.Failure.Message + "; the next apply tries it again"
			return true
		}
	}
	return false
}

// succeeded reports whether the last attempt at the key of a step succeeded, whatever became of its result.
func (d *decider) succeeded(s *Step) bool {
	last, ok := d.Journal.Last(s.Node.Address, s.Key)
	return ok && last.Failure == nil
}
