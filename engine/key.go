package engine

import (
	"context"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
)

// known is what is known of the nodes that a node waits for. A plan and an apply know it from different sources, but
// must say the same of the same end: else what comes after it would get another key with every plan.
type known interface {
	keyOf(*Node) cache.Key
	endOf(*Node) string    // how it ended, with all that a task can see of that
	digestOf(*Node) string // of its result; empty: none
}

func digestOf(m *cache.Meta) string {
	if m == nil {
		return ""
	}
	return m.Digest
}

// describe writes the whole description of a node into d. An address is no part of it: a renamed block is the same work.
func describe(d *cache.Description, n *Node, k known) {
	d.Reset(n.Kind)
	n.Task.Describe(d)
	for _, dep := range n.Needs {
		d.Add("input", dep.Kind, k.keyOf(dep).String())
	}
	for _, dep := range n.After {
		key, end := "", k.endOf(dep)
		if end == string(NodeDone) || end == endUnknown {
			key = k.keyOf(dep).String() // without a result there is nothing for it to stand for
		}
		d.Add("after", dep.Kind, key, end)
	}
}

// contentKey is the key of a node's own description and what its inputs came out as, whatever made them. It is
// written into d. It is zero for a node without inputs, of which it would say no more than its key.
func contentKey(d *cache.Description, n *Node, k known) cache.Key {
	if len(n.Needs)+len(n.After) == 0 {
		return cache.Key{}
	}
	d.Reset(n.Kind)
	n.Task.Describe(d)
	for _, dep := range n.Needs {
		d.Add("content", dep.Kind, k.digestOf(dep))
	}
	for _, dep := range n.After {
		d.Add("after", dep.Kind, k.digestOf(dep), k.endOf(dep))
	}
	return d.Key()
}

// endUnknown stands in the keys of what comes after a node as long as nobody knows how that will end.
const endUnknown = "to be run"

// endOfFailure is how a failed node enters the keys of what comes after it.
func endOfFailure(f *cache.Failure) string {
	return strings.Join([]string{string(f.Class), f.Rule, f.Stage, f.Subject, f.Message, f.Evidence, f.Remedy}, "; ")
}

// endOfHindered is how a node that is skipped or blocked enters the keys of what comes after it.
func endOfHindered(as Action, reason string, never bool) string {
	return string(as) + "; " + reason + "; " + strconv.FormatBool(never)
}

// needsWhat is the reason of a node that cannot run because of one that it needs.
func needsWhat(dep *Node, as state) string {
	how := "is blocked"
	switch as {
	case faltered, failed:
		how = "failed"
	case excluded:
		how = "is skipped"
	}
	return "needs " + dep.Address + ", which " + how
}

// why says in one sentence what makes a node stale: the difference between the texts of its last key and of this one.
func (p *planner) why(ctx context.Context, s *Step) string {
	if s.damage != "" || s.gone != "" {
		return s.absence()
	}
	for _, dep := range s.Node.Needs {
		if p.plan.Steps[dep.id].Action == Run {
			return "needs " + dep.Address + ", which is to be run"
		}
	}
	for _, dep := range s.Node.After {
		if p.plan.Steps[dep.id].Action == Run {
			return "comes after " + dep.Address + ", which is to be run"
		}
	}
	attempts := p.Journal.Attempts(s.Node.Address)
	for i := len(attempts) - 1; i >= 0; i-- {
		last := attempts[i]
		if last.Failure != nil && last.Key == s.Key {
			return "its last attempt failed: " + last.Failure.Message
		}
		if last.Key == s.Key {
			return "its result is no longer in the store"
		}
		if old, err := peek(ctx, p.Store, last.Key); err == nil && old.Dir != "" {
			return cache.Explain(old.Text, s.Text)
		}
	}
	return "no result yet"
}
