package engine

import (
	"github.com/benchgraph/benchgraph/cache"
)

// settle ends a step that need not run, once all its dependencies have ended. It reports false if the step must run
// now.
//
// The plan could not be sure of two kinds of steps: those to be run, and those that a dependency keeps from running.
// For them it is decided again. All others end as the plan says.
func (r *run) settle(s *Step) (ended bool) {
	moved, refused := r.rekey(s), s.refused()
	if s.found.twin != nil {
		r.settleTwin(s)
	}
	if s.state == missing || s.outcome() == missing && s.obstacle.by != nil {
		r.decideAgain(s, moved)
	}
	switch {
	case s.state == missing:
		s.Action = Run
		return false
	case s.state == unneeded:
		r.leftOut(s)
	case s.state == present && !refused:
		r.cached(s)
	case s.state.isFailure():
		r.failedBefore(s)
	default:
		r.skipped(s)
	}
	return true
}

// rekey gives a step the key that a plan made now would give it, and reports whether the key changed: the plan did not
// know how the nodes in After, of the step or of its inputs, would end. An up-to-date step does not depend on unknown
// ends.
func (r *run) rekey(s *Step) (moved bool) {
	if s.Action != Run && (s.found.entry != nil || s.Failure != nil) {
		return false
	}
	stale := len(s.Node.After) > 0
	for _, dep := range s.Node.Needs {
		stale = stale || r.steps[dep.id].Key != r.plan.Steps[dep.id].Key
	}
	if !stale {
		return false
	}
	planned := s.Key
	r.describe(s)
	return s.Key != planned
}

// decideAgain looks up the outcome of a step again, now that its dependencies have ended, and decides its state. An old
// outcome stands if it cannot be made again. If the store cannot answer, the apply ends: it must not run everything
// again.
func (r *run) decideAgain(s *Step, moved bool) {
	found := false
	if s.Action == Run {
		var err error
		if found, err = r.lookUpAgain(r.ctx, s, moved); err != nil {
			r.abort(err)
		}
	}
	if r.decide(r.ctx, s); s.state == present && !found {
		s.Reason = upToDate
	}
}

// abort ends the apply because of an error of the engine itself.
func (r *run) abort(err error) {
	if r.fatal == nil && r.ctx.Err() == nil {
		r.fatal = err
	}
}

// settleTwin gives a step the outcome of the node that did its work. If that node could not run, for a reason of its
// own, the step runs itself.
func (r *run) settleTwin(s *Step) {
	twin := &r.steps[s.found.twin.id]
	switch {
	case twin.Key == s.Key && twin.state == present:
		s.found.entry, s.state = twin.found.entry, present
	case twin.Key == s.Key && twin.state.isFailure():
		s.Failure, s.state = twin.Failure, twin.state
		s.Reason += ", which failed"
	default:
		s.Action, s.found.twin = Run, nil
		s.Reason += ", which was not done"
	}
}

func (r *run) cached(s *Step) {
	r.result.Cached++
	r.emit(Event{Type: NodeCached, Address: s.Node.Address, Key: s.Key, Reason: s.Reason})
}

// leftOut ends a step that has no result and needs none.
func (r *run) leftOut(s *Step) {
	kind := NodeCached
	if s.Action == Skip {
		r.result.Skipped++
		kind = NodeSkipped
	} else {
		r.result.Cached++
	}
	if s.found.damage != "" { // no other event reports damage
		r.emit(Event{Type: Note, Address: s.Node.Address, Reason: s.Reason})
	}
	r.emit(Event{Type: kind, Address: s.Node.Address, Key: s.Key, Reason: s.Reason})
}

func (r *run) skipped(s *Step) {
	if s.state == excluded {
		s.Action = Skip
		r.result.Skipped++
	} else {
		s.Action = Blocked
		r.result.Blocked++
	}
	r.emit(Event{Type: NodeSkipped, Address: s.Node.Address, Key: s.Key, Reason: s.Reason})
}

// failedBefore ends a step whose failure is known without an attempt.
func (r *run) failedBefore(s *Step) {
	failure, log := s.Failure.Failure, r.logOf(s.Failure)
	s.Action = Blocked
	r.result.Failed++
	r.result.Failures = append(r.result.Failures, Failed{s.Node.Address, *failure, log})
	r.emit(Event{Type: NodeFailed, Address: s.Node.Address, Key: s.Key, Reason: s.Reason, Failure: failure, Log: log})
}

// endFor returns how a node ended for the tasks that come after it, as Plan.End does; the attempt fills in the entry.
func (r *run) endFor(n *Node) End {
	s := &r.steps[n.id]
	e := End{Address: n.Address, Action: s.Action, Reason: s.Reason, Never: s.Never}
	if s.Failure != nil {
		e.Action, e.Reason, e.Failure = Blocked, s.Failure.Failure.Message, s.Failure.Failure
	}
	if s.state == present {
		e.Reason = ""
		if s.found.entry != nil {
			e.Entry = cache.Entry{Meta: *s.found.entry}
		}
	}
	return e
}
