package engine

import (
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
)

// describe sets the key of a step and the description that the key is made from. An address is no part of them: a
// renamed block is the same work.
func (d *decider) describe(s *Step) {
	n := s.Node
	d.text.Reset(n.Kind)
	n.Task.Describe(&d.text)
	for _, dep := range n.Needs {
		d.text.Add("input", dep.Kind, d.step(dep).Key.String())
	}
	for _, dep := range n.After {
		key, end := "", d.endOf(dep)
		if end == string(NodeDone) || end == endUnknown {
			key = d.step(dep).Key.String() // a node without a result has nothing for its key to stand for
		}
		d.text.Add(cache.After, dep.Kind, key, end)
	}
	s.Key, s.Text = d.text.Key(), d.text.Text()
}

// contentKey returns the key of a node's own description and the digests of its inputs, whatever made them. It is zero
// for a node without inputs, for which it would say no more than the node's key.
func (d *decider) contentKey(n *Node) cache.Key {
	if len(n.Needs)+len(n.After) == 0 {
		return cache.Key{}
	}
	d.text.Reset(n.Kind)
	n.Task.Describe(&d.text)
	for _, dep := range n.Needs {
		d.text.Add("content", dep.Kind, d.digestOf(dep))
	}
	for _, dep := range n.After {
		d.text.Add(cache.After, dep.Kind, d.digestOf(dep), d.endOf(dep))
	}
	return d.text.Key()
}

// digestOf returns the digest of a node's result; "" without a result.
func (d *decider) digestOf(n *Node) string {
	if entry := d.step(n).found.entry; entry != nil {
		return entry.Digest
	}
	return ""
}

// endUnknown stands in the keys of a node's users for as long as the end of the node is unknown.
const endUnknown = "to be run"

// endOf returns how a node ended, as its users' keys contain it: all that a task can see of the end. A plan and an
// apply must return the same for the same end. Otherwise every plan would find another key.
func (d *decider) endOf(n *Node) string {
	s := d.step(n)
	switch {
	case s.state == excluded:
		return endOfHindered(Skip, s)
	case s.Failure != nil:
		f := s.Failure.Failure
		parts := []string{string(f.Class), f.Rule, f.Stage, f.Subject, f.Message, f.Evidence, f.Remedy}
		return strings.Join(parts, "; ")
	case s.found.entry != nil, s.found.succeeded && !d.ignoreEvicted:
		return string(NodeDone)
	case s.state > present:
		return endOfHindered(Blocked, s)
	}
	return endUnknown
}

// endOfHindered returns the end of a skipped or blocked node.
func endOfHindered(as Action, s *Step) string {
	return string(as) + "; " + s.Reason + "; " + strconv.FormatBool(s.Never)
}
