package engine

import (
	"context"

	"github.com/benchgraph/benchgraph/cache"
)

// describe writes the whole description of a node. An address is no part of it: a renamed block is the same work.
func describe(n *Node, keyOf func(*Node) cache.Key, endOf func(*Node) string) *cache.Description {
	d := cache.Describe(n.Kind)
	n.Task.Describe(d)
	for _, dep := range n.Needs {
		d.Add("input", dep.Kind, keyOf(dep).String())
	}
	for _, dep := range n.After {
		d.Add("after", dep.Kind, keyOf(dep).String(), endOf(dep))
	}
	return d
}

// contentKey is the key of a node's own description and what its inputs came out as, whatever made them.
func contentKey(n *Node, digestOf func(*Node) string, endOf func(*Node) string) cache.Key {
	d := cache.Describe(n.Kind)
	n.Task.Describe(d)
	for _, dep := range n.Needs {
		d.Add("content", dep.Kind, digestOf(dep))
	}
	for _, dep := range n.After {
		d.Add("after", dep.Kind, endOf(dep))
	}
	return d.Key()
}

// endOfFailure is how a failed node enters the keys of what comes after it.
func endOfFailure(f *cache.Failure) string {
	return string(f.Class) + " " + f.Rule + " " + f.Message
}

// why says in one sentence what makes a node stale: the difference between the texts of its last key and of this one.
func (p *planner) why(ctx context.Context, s *Step) string {
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
		if old, err := p.Store.Get(ctx, last.Key, false); err == nil {
			return cache.Explain(old.Text, s.Text)
		}
	}
	return "no result yet"
}
