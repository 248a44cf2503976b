package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
)

// settle decides what becomes of a step once all that it waits for has ended: its end, or the zero end when it is to be
// run now.
func (r *run) settle(s *Step) end {
	moved := r.rekey(s)
	if s.twin != nil {
		if e := r.settleTwin(s); e.known {
			return e
		}
	}
	switch {
	case s.unneeded:
		return r.leftOut(s)
	case s.Action == Cached:
		return r.cached(s, s.entry, s.Reason)
	case s.Action == Blocked && s.entry != nil: // which was to be replaced
		r.skipped(s, hindered)
		return end{known: true, state: present, text: string(NodeDone), meta: s.entry, key: s.Key}
	case s.Failure != nil:
		return r.rememberedFailure(s)
	case s.Action == Run && !s.forced:
		if e := r.secondChance(s, moved); e.known {
			return e
		}
	}
	if s.Action == Run || s.through {
		dep, as := s.Node.hinderer(func(dep *Node) state { return r.ends[dep.id].state })
		if dep == nil {
			return end{}
		}
		if s.entry != nil { // as the next plan will see it: what was made before stands
			return r.cached(s, s.entry, upToDate)
		}
		s.Reason, s.Never = needsWhat(dep, as), r.steps[dep.id].Never
		return r.skipped(s, as.blocks())
	}
	if s.Action == Skip {
		return r.skipped(s, excluded)
	}
	return r.skipped(s, hindered)
}

// rekey gives a step the key that a plan made now would give it, and says whether that is another one: the plan could
// not know how what the step comes after, itself or through an input, would end. A step that is up to date waits for
// nothing of that kind.
func (r *run) rekey(s *Step) (moved bool) {
	if s.Action != Run && (s.entry != nil || s.Failure != nil) {
		return false
	}
	stale := len(s.Node.After) > 0
	for _, dep := range s.Node.Needs {
		stale = stale || r.ends[dep.id].key != r.plan.Steps[dep.id].Key
	}
	if !stale {
		return false
	}
	planned := s.Key
	describe(&r.text, s.Node, r)
	s.Key, s.Text = r.text.Key(), r.text.Text()
	return s.Key != planned
}

// secondChance looks once more before a step is run: now that the ends and the digests of what it waited for are known,
// its result or its failure may turn out to be there.
func (r *run) secondChance(s *Step, moved bool) end {
	if moved && !s.follows {
		if entry, ok := r.look(s, func() (cache.Entry, error) { return peek(r.ctx, r.Store, s.Key) }); ok {
			return r.cached(s, &entry.Meta, "up to date: what it comes after ended as before")
		}
	}
	if r.newContent(s.Node) {
		if entry, ok := r.look(s, func() (cache.Entry, error) { return peekContent(r.ctx, r.Store, contentKey(&r.text, s.Node, r)) }); ok {
			return r.cached(s, &entry.Meta, sameContent)
		}
	}
	if moved {
		if attempt, reason, ok := r.plan.options.remembered(s.Node.Address, s.Key); ok {
			s.Failure, s.Reason = &attempt, reason
			return r.rememberedFailure(s)
		}
	}
	return end{}
}

// look asks the store. A store that cannot answer ends the apply: to run everything again would be no answer.
func (r *run) look(s *Step, ask func() (cache.Entry, error)) (cache.Entry, bool) {
	entry, err := ask()
	if err == nil {
		if s.gone, err = s.Node.kept(r.ctx, entry); s.gone != "" {
			return entry, false
		}
	}
	if err != nil && !errors.Is(err, cache.ErrMiss) && r.ctx.Err() == nil && r.fatal == nil {
		r.fatal = fmt.Errorf("%s: %w", s.Node.Address, err)
	}
	return entry, err == nil
}

func (r *run) keyOf(n *Node) cache.Key { return r.ends[n.id].key }
func (r *run) endOf(n *Node) string    { return r.ends[n.id].text }
func (r *run) digestOf(n *Node) string { return digestOf(r.ends[n.id].meta) }

// newContent says whether the bytes of all inputs of a node are known now, and were not when it was planned.
func (r *run) newContent(n *Node) bool {
	for _, dep := range n.Needs {
		if r.ends[dep.id].state != present {
			return false
		}
	}
	made := func(dep *Node) bool { s := &r.steps[dep.id]; return s.Action == Run || s.twin != nil }
	return slices.ContainsFunc(n.Needs, made) || slices.ContainsFunc(n.After, made)
}

// settleTwin ends a step as the node that did its work ended. When that could not run, for a reason of its own, the
// step is run itself.
func (r *run) settleTwin(s *Step) end {
	e := &r.ends[s.twin.id]
	switch {
	case e.key != s.Key:
	case e.state == present:
		return r.cached(s, e.meta, s.Reason)
	case e.state.isFailure():
		s.Failure = &cache.Attempt{ID: e.attempt, Failure: e.failure}
		s.Reason += ", which failed"
		return r.rememberedFailure(s)
	}
	s.Reason += ", which was not done"
	s.Action, s.twin = Run, nil
	return end{}
}

func (r *run) cached(s *Step, meta *cache.Meta, reason string) end {
	r.result.Cached++
	r.emit(Event{Type: NodeCached, Address: s.Node.Address, Key: s.Key, Reason: reason})
	return end{known: true, state: present, text: string(NodeDone), meta: meta, key: s.Key}
}

// leftOut ends a step that has no result and needs none.
func (r *run) leftOut(s *Step) end {
	kind := NodeCached
	if s.Action == Skip {
		r.result.Skipped++
		kind = NodeSkipped
	} else {
		r.result.Cached++
	}
	if s.damage != "" { // which nobody else tells
		r.emit(Event{Type: Note, Address: s.Node.Address, Reason: s.Reason})
	}
	r.emit(Event{Type: kind, Address: s.Node.Address, Key: s.Key, Reason: s.Reason})
	return end{known: true, state: missing, text: endUnknown, key: s.Key}
}

func (r *run) skipped(s *Step, as state) end {
	s.Action = Skip
	if as == excluded {
		r.result.Skipped++
	} else {
		r.result.Blocked++
		s.Action = Blocked
	}
	r.emit(Event{Type: NodeSkipped, Address: s.Node.Address, Key: s.Key, Reason: s.Reason})
	return end{known: true, state: as, text: endOfHindered(s.Action, s.Reason, s.Never), key: s.Key}
}

// rememberedFailure ends a step that fails without an attempt, since the failure is known.
func (r *run) rememberedFailure(s *Step) end {
	failure := s.Failure.Failure
	log := r.logPath(s.Failure.ID)
	s.Action = Blocked
	r.result.Failed++
	r.result.Failures = append(r.result.Failures, Failed{s.Node.Address, *failure, log})
	r.emit(Event{Type: NodeFailed, Address: s.Node.Address, Key: s.Key, Reason: s.Reason, Failure: failure, Log: log})
	return end{known: true, state: afterFailure(failure), text: endOfFailure(failure), failure: failure, attempt: s.Failure.ID, key: s.Key}
}

// told is how a node's end is shown to the tasks that come after it, as Plan.End shows it; an attempt fills in the entry.
func (r *run) told(n *Node) End {
	s, e := &r.steps[n.id], &r.ends[n.id]
	t := End{Address: n.Address, Action: s.Action, Reason: s.Reason, Never: s.Never, Failure: e.failure}
	if e.meta != nil {
		t.Entry.Meta = *e.meta
	}
	switch {
	case e.state == present:
		t.Reason = ""
	case e.failure != nil:
		t.Action, t.Reason = Blocked, e.failure.Message
	}
	return t
}
