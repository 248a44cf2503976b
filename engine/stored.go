package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
)

// find finds out what is stored of a node. What it comes after and is lost counts as done, for so it ended. When nothing is stored
// that was made while that was there, something may be that was made without it.
func (p *planner) find(ctx context.Context, s *Step) error {
	if !p.settled(s.Node) {
		return nil
	}
	found, err := p.stored(ctx, s)
	if found || err != nil {
		return err
	}
	s.ended = s.ended || p.endedWell(s.Node.Address, s.Key)
	if p.without = slices.ContainsFunc(s.Node.After, p.lost); !p.without {
		return nil
	}
	if p.settled(s.Node) {
		p.describe(s)
		s.without, err = p.stored(ctx, s)
	}
	p.without = false
	if !s.without {
		p.describe(s)
	}
	return err
}

func (p *planner) describe(s *Step) {
	describe(&p.text, s.Node, p)
	s.Key, s.Text = p.text.Key(), p.text.Text()
}

// lost says that a node ended well, and that its result is not there any more.
func (p *planner) lost(n *Node) bool {
	s := &p.plan.Steps[n.id]
	return s.ended && s.stands() == missing
}

// settled says that all the ends that are part of the node's key are known.
func (p *planner) settled(n *Node) bool {
	for _, dep := range n.After {
		if p.state[dep.id] == missing && p.plan.Steps[dep.id].stands() == missing && (p.without || !p.lost(dep)) {
			return false
		}
	}
	return true
}

// stored looks for the node's result: by key, then by content, then as a remembered failure. That it was made says of all
// that it needs that it ended well.
func (p *planner) stored(ctx context.Context, s *Step) (bool, error) {
	n := s.Node
	own, err := p.take(ctx, s, upToDate, s.Key, func(key cache.Key) (cache.Entry, error) { return peek(ctx, p.Store, key) })
	found := own
	if !found && err == nil && p.allStored(n) {
		found, err = p.take(ctx, s, sameContent, contentKey(&p.text, n, p), func(content cache.Key) (cache.Entry, error) { return peekContent(ctx, p.Store, content) })
	}
	if err != nil {
		return false, err
	}
	if !found {
		if attempt, reason, ok := p.remembered(n.Address, s.Key); ok {
			s.Failure, s.Reason = &attempt, reason
			own, found = true, true
		}
	}
	if own {
		for _, dep := range n.Needs {
			p.plan.Steps[dep.id].ended = true
		}
	}
	return found, nil
}

// take asks the store for a key and takes what it has, if it is whole, as the node's result. Else it notes what there is.
func (p *planner) take(ctx context.Context, s *Step, reason string, key cache.Key, ask func(cache.Key) (cache.Entry, error)) (bool, error) {
	n := s.Node
	entry, err := ask(key)
	if err == nil {
		s.gone, err = n.kept(ctx, entry)
		if err == nil && s.gone == "" && p.outdated(n, &entry.Meta) {
			s.outdated, s.gone = true, "what it says was read from a result that was made anew since"
		}
		if err == nil && s.gone == "" {
			s.entry, s.Reason = &entry.Meta, from(reason, &entry)
			return true, nil
		}
	}
	if s.asked == nil {
		s.asked = &Asked{}
	}
	switch {
	case err == nil:
		s.asked.Gone = append(s.asked.Gone, entry.Meta)
	case errors.Is(err, cache.ErrDamaged):
		s.asked.Damaged = true
		s.damage = err.Error() // the store tells it once: the entry is out of the way now
	case !errors.Is(err, cache.ErrMiss):
		return false, fmt.Errorf("%s: %w", n.Address, err)
	case reason == sameContent:
		s.asked.Contents = append(s.asked.Contents, key)
	default:
		s.asked.Keys = append(s.asked.Keys, key)
	}
	return false, nil
}

// The reasons of nodes that were found by their keys and by their contents.
const (
	upToDate    = "up to date"
	sameContent = "up to date: what it needs was made anew and came out the same"
)

// outdated says whether a result only says what its inputs say, and was read from others than those that are stored now: an apply
// that made these anew ended before it was read again.
func (p *planner) outdated(n *Node, m *cache.Meta) bool {
	if !n.Reads || m.Content.IsZero() {
		return false
	}
	outdated := func(dep *Node) bool { return p.plan.Steps[dep.id].outdated }
	if slices.ContainsFunc(n.Needs, outdated) || slices.ContainsFunc(n.After, outdated) {
		return true
	}
	return p.allStored(n) && !slices.ContainsFunc(n.After, p.lost) && contentKey(&p.text, n, p) != m.Content
}

// allStored says that the bytes of all inputs of a node are known, and that there are some: without any, its content
// key says no more than its key.
func (p *planner) allStored(n *Node) bool {
	for _, dep := range n.Needs {
		if p.plan.Steps[dep.id].entry == nil {
			return false
		}
	}
	return len(n.Needs)+len(n.After) > 0
}

// stands is the state of a node of which nothing is asked but what is stored.
func (s *Step) stands() state {
	switch {
	case s.entry != nil:
		return present
	case s.Failure != nil:
		return afterFailure(s.Failure.Failure)
	}
	return missing
}

func (p *planner) keyOf(n *Node) cache.Key { return p.plan.Steps[n.id].Key }
func (p *planner) digestOf(n *Node) string { return digestOf(p.plan.Steps[n.id].entry) }

func (p *planner) endOf(n *Node) string {
	s := &p.plan.Steps[n.id]
	switch {
	case p.state[n.id] == excluded:
		return endOfHindered(Skip, s.Reason, s.Never)
	case s.Failure != nil:
		return endOfFailure(s.Failure.Failure)
	case s.entry != nil, s.ended && !p.without:
		return string(NodeDone)
	case p.state[n.id] != missing:
		return endOfHindered(Blocked, s.Reason, s.Never)
	}
	return endUnknown
}
