package memo

import (
	"context"
	"path/filepath"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/stats"
)

// still gives nodes without a result what a memo needs so that they stand: what failed, is blocked by a failure, or is
// gone and not needed. It is nil, and they do not stand, when all of them can be made anew alone, when something is to
// be run, or when what becomes of them hangs on more than the store, the journal, the engine's images and what the pool
// can ever serve.
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

// droppedForGood says that no member was dropped for what this machine lacks.
func (p *Planned) droppedForGood() bool {
	for _, gap := range p.Dropped {
		if gap.Outcome == stats.Infeasible || gap.Outcome == stats.NotRun {
			return false
		}
	}
	return true
}

// steady says whether what becomes of a step without a result does not hang on what its node or others lack at the
// moment. What comes after a node asks why that is blocked.
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
	// what cannot run itself is why, and not what is lacking
	for _, list := range [...][]*engine.Node{n.Needs, n.Order} {
		for _, dep := range list {
			if d, ok := p.Plan.Step(dep.Address); ok && d.Action == engine.Blocked && s.Action == engine.Blocked {
				return true
			}
		}
	}
	return false
}

// take takes over what the store was asked for in vain; false when that would be told in another way the next time.
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

// journalThing is the journal as it was asked; false when it has something else by now.
func (p *Planned) journalThing(ctx context.Context) (thing, bool) {
	path := filepath.Join(p.StateDir, "journal")
	h, err := p.Stat.Hash(ctx, path)
	return fileThing(path, h), err == nil && p.Journal.Current()
}
