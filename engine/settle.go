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
	switch {
	case s.Action == Cached && s.twin != nil:
		return r.settleTwin(s)
	case s.Action == Cached:
		return r.cached(s, s.entry, s.Reason)
	case s.Action == Skip:
		return r.skipped(s, excluded, s.Reason)
	case s.Failure != nil:
		return r.rememberedFailure(s)
	case s.Action == Blocked:
		return r.skipped(s, hindered, s.Reason)
	}
	for _, dep := range slices.Concat(s.Node.Needs, s.Node.Order) {
		switch e := r.ends[dep.id]; e.state {
		case failed:
			return r.skipped(s, hindered, fmt.Sprintf("needs %s, which failed", dep.Address))
		case hindered, excluded:
			return r.skipped(s, hindered, fmt.Sprintf("needs %s, which did not run", dep.Address))
		}
	}
	return r.secondChance(s)
}

// secondChance looks once more before a step is run: now that the ends and the digests of what it waited for are known,
// its result may turn out to be there.
func (r *run) secondChance(s *Step) end {
	n := s.Node
	if r.movedKey(n) {
		d := describe(n, r.keyOf, r.endOf)
		s.Key, s.Text = d.Key(), d.Text()
		entry, err := r.Store.Get(r.ctx, s.Key, false)
		if err == nil {
			return r.cached(s, entry.Meta, "what it comes after ended as before")
		}
		if !errors.Is(err, cache.ErrMiss) {
			r.fatal = fmt.Errorf("%s: %w", n.Address, err)
		}
	}
	if !r.ranAny(n.Needs) {
		return end{}
	}
	if entry, err := r.Store.Find(r.ctx, r.content(n)); err == nil {
		return r.cached(s, entry.Meta, "what it needs was made anew and came out the same")
	}
	return end{}
}

// movedKey says whether the plan could not know the node's key: something that it comes after, or comes after through
// an input, was still to be run.
func (r *run) movedKey(n *Node) bool {
	for _, dep := range n.Needs {
		if r.ends[dep.id].key != r.plan.Steps[dep.id].Key {
			return true
		}
	}
	return len(n.After) > 0
}

func (r *run) keyOf(n *Node) cache.Key { return r.ends[n.id].key }
func (r *run) endOf(n *Node) string    { return r.ends[n.id].text }
func (r *run) digestOf(n *Node) string { return r.ends[n.id].meta.Digest }

// ranAny says whether one of the nodes was run in this apply, so that its digest was not known to the plan.
func (r *run) ranAny(nodes []*Node) bool {
	for _, n := range nodes {
		if r.steps[n.id].Action == Run || r.steps[n.id].twin != nil {
			return true
		}
	}
	return false
}

func (r *run) content(n *Node) cache.Key { return contentKey(n, r.digestOf, r.endOf) }

func (r *run) settleTwin(s *Step) end {
	switch e := r.ends[s.twin.id]; e.state {
	case present:
		return r.cached(s, e.meta, s.Reason)
	default:
		return r.skipped(s, hindered, s.Reason+", which did not succeed")
	}
}

func (r *run) cached(s *Step, meta cache.Meta, reason string) end {
	r.result.Cached++
	r.emit(Event{Type: NodeCached, Address: s.Node.Address, Key: s.Key, Reason: reason})
	return end{known: true, state: present, text: string(NodeDone), meta: meta, key: s.Key}
}

// told is how a node's end is shown to the tasks that come after it; an attempt fills in the entry.
func (r *run) told(n *Node) End {
	s, e := &r.steps[n.id], &r.ends[n.id]
	t := End{Address: n.Address, Action: s.Action, Reason: s.Reason, Never: s.Never, Failure: e.failure}
	t.Entry.Meta = e.meta
	if e.state != present && t.Action == Run {
		t.Action = Blocked
	}
	return t
}

func (r *run) skipped(s *Step, as state, reason string) end {
	text := string(Skip)
	if as == excluded {
		r.result.Skipped++
	} else {
		r.result.Blocked++
		text = string(Blocked)
	}
	s.Reason = reason
	r.emit(Event{Type: NodeSkipped, Address: s.Node.Address, Key: s.Key, Reason: reason})
	return end{known: true, state: as, text: text, key: s.Key}
}

func (r *run) rememberedFailure(s *Step) end {
	failure := s.Failure.Failure
	log := r.logPath(s.Failure.ID)
	r.result.Failed++
	r.result.Failures = append(r.result.Failures, Failed{s.Node.Address, *failure, log})
	r.emit(Event{Type: NodeFailed, Address: s.Node.Address, Key: s.Key, Reason: s.Reason, Failure: failure, Log: log})
	return end{known: true, state: failed, text: endOfFailure(failure), failure: failure, key: s.Key}
}
