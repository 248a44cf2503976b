package memo

import (
	"context"
	"path/filepath"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/stats"
)

// still returns the conditions under which nodes without a result stand: nodes that failed, are blocked by a failure,
// or have lost a result that is not needed. It returns nil, and these nodes are planned again, if each of them can be
// made anew alone, if a node is to run, or if the state of one depends on more than the store, the journal, the images
// and the capacity of the pool.
func (p *Planned) still(m *memo) *still {
	plan := p.Plan
	if plan.Counts()[engine.Run] > 0 || !p.droppedForGood() {
		return nil
	}
	s := &still{Keys: p.Missed}
	after := map[*engine.Node]bool{}
	for i := range plan.Steps {
		for _, dep := range plan.Steps[i].Node.After {
			after[dep] = true
		}
	}
	alone := true
	for i := range plan.Steps {
		step, n := &plan.Steps[i], &m.Nodes[i]
		if n.Excluded || n.Digest != "" {
			continue
		}
		if _, stored := step.Stored(); stored || !p.steady(step, after[step.Node]) || !p.take(s, step) {
			return nil
		}
		alone = alone && !n.Block.IsZero()
	}
	if alone {
		return nil
	}
	for i := range plan.Steps {
		if n := &m.Nodes[i]; !n.Excluded && n.Digest == "" {
			n.Action = plan.Steps[i].Action
		}
	}
	return s
}

// droppedForGood reports whether no member was dropped for something that this machine lacks.
func (p *Planned) droppedForGood() bool {
	for _, gap := range p.Dropped {
		if gap.Outcome == stats.Infeasible || gap.Outcome == stats.NotRun {
			return false
		}
	}
	return true
}

// steady reports whether the state of a step without a result is independent of things that are missing only at the
// moment. isAfter says that another node comes after this one, and so depends on why this one is blocked.
func (p *Planned) steady(s *engine.Step, isAfter bool) bool {
	n := s.Node
	if s.Never || p.Pool.Fits(n.Resources) != nil {
		return false
	}
	if n.Lacks == nil || s.Failure != nil || n.Exclude.Action != "" {
		return true
	}
	if s.Action == engine.Cached {
		return !isAfter
	}
	// if a dependency is blocked, that is the reason, and not a missing thing
	for _, list := range [...][]*engine.Node{n.Needs, n.Order} {
		for _, dep := range list {
			if d, ok := p.Plan.Step(dep.Address); ok && d.Action == engine.Blocked && s.Action == engine.Blocked {
				return true
			}
		}
	}
	return false
}

// take adds to the conditions the questions that the store could not answer; false if the next plan may get other
// answers.
func (p *Planned) take(to *still, s *engine.Step) bool {
	asked := s.Asked()
	if asked.Damaged {
		return false
	}
	to.Keys = append(to.Keys, asked.Keys...)
	to.Contents = append(to.Contents, asked.Contents...)
	for i := range asked.Gone {
		g := gone{Entry: p.Store.Outline(&asked.Gone[i]), Outside: p.Maker.Made.IDOf(asked.Gone[i].Key)}
		if g.Entry.Key.IsZero() || g.Outside == "" {
			return false
		}
		to.Gone = append(to.Gone, g)
	}
	return true
}

// journalThing returns the journal as a thing; false if others have appended to it since it was read.
func (p *Planned) journalThing(ctx context.Context) (thing, bool) {
	path := filepath.Join(p.StateDir, "journal")
	h, err := p.Stat.Hash(ctx, path)
	return fileThing(path, h), err == nil && p.Journal.Current()
}
