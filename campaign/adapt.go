package campaign

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/tasks"
)

// adapt changes what the next round's graph is made from, by what the plan found: members that cannot take part leave
// their groups, and groups whose verdicts are open get more blocks. It returns whether anything changed.
func (p *Project) adapt(ctx context.Context, plan *engine.Plan) (bool, error) {
	changed := p.findMisfits(plan)
	for _, g := range p.Groups {
		if _, apart := p.next.Alone[g.Name]; apart && complete(g, plan) {
			continue // nothing is judged
		} else if complete(g, plan) {
			changed = p.findIssues(plan, g) || changed
			more, err := p.more(ctx, g, plan)
			if err != nil {
				return false, err
			}
			if more > 0 {
				p.next.Blocks[g.Name] = g.Count() + more
				changed = true
			}
			continue
		}
		if _, apart := p.next.Alone[g.Name]; !apart {
			same := p.Identicals(plan, g)
			maps.Copy(p.next.Dropped, same)
			changed = changed || len(same) > 0
		}
		wait := func() {} // once it is known which of the others cannot be measured at all
		for _, m := range g.Members {
			address := m.Bench.Address.String()
			if _, known := p.next.Dropped[address]; known {
				continue
			}
			gap, lacks := p.cannot(plan, m)
			breaks := false
			if !lacks {
				gap, breaks = breaksBlocks(plan, g, m)
			}
			if lacks || breaks {
				p.next.Dropped[address] = gap
				if c, failed := p.causeBehind(plan, g, m); failed {
					p.next.Causes[address] = c
					if lacks && gap.Outcome == stats.Infra && !m.Baseline {
						wait = func() { p.wait(g, m, c) }
					}
				}
				changed = true
				p.noteMissing(plan, g)
			}
		}
		wait()
	}
	return changed, nil
}

// findIssues notes the members of a group that have a known issue, as a probe found since, or whose code changes
// protected files. The group has all its samples. The blocks of these members stay, since others were measured in them;
// their outcomes are those of members that were never measured. It reports whether it noted another member.
func (p *Project) findIssues(plan *engine.Plan, g *tasks.Group) (found bool) {
	for _, m := range g.Members {
		address := m.Bench.Address.String()
		if _, known := p.next.Issues[address]; known || p.Excluded[m.Candidate].Outcome != "" {
			continue
		}
		for _, probe := range p.Probes[m.Candidate] {
			step, ok := plan.Step(probe.String())
			if !ok || step.Failure == nil || !tasks.KnownIssue(step.Failure.Failure) &&
				!tasks.ProtectedFailure(step.Failure.Failure) {
				continue
			}
			p.next.Issues[address], _ = causeOf(plan, step)
			found = true
		}
	}
	return found
}

// complete reports whether the store has every sample of the group: in a block, or gathered from a block that is lost.
func complete(g *tasks.Group, plan *engine.Plan) bool {
	stored := func(a hclspec.Address) bool {
		step, ok := plan.Step(a.String())
		if ok {
			_, ok = step.Stored()
		}
		return ok
	}
	ungathered := func(m tasks.Member) bool {
		_, out := g.Absent[m.Name]
		return !out && !stored(m.Bench.Address)
	}
	lost := slices.ContainsFunc(g.Trials, func(t findings.Block) bool { return !stored(t.At) })
	return len(g.Trials) > 0 && !(lost && slices.ContainsFunc(g.Members, ungathered))
}

// failedBlocks are, when failures are to be tried again, the blocks in which a member failed. They are in the store,
// for the samples of the others are good; so they are to be replaced.
func (p *Project) failedBlocks(ctx context.Context, plan *engine.Plan, o PlanOptions) (map[string]bool, error) {
	if !o.RetryFailed {
		return nil, nil
	}
	failed := map[string]bool{}
	ends, err := p.ends(ctx, plan, p.Groups...)
	if err != nil {
		return nil, err
	}
	for _, g := range p.Groups {
		for _, t := range g.Trials {
			end := ends[t.At.String()]
			if end.Entry.Dir == "" {
				continue
			}
			rec, err := sample.ReadRecord(end.Entry)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.At, err)
			}
			for _, m := range rec.Members {
				if m.Failure != nil || m.Skipped != "" && !m.Same {
					failed[end.Address] = true
				}
			}
		}
	}
	return failed, nil
}

// more is how many further blocks the verdicts on the group ask for.
func (p *Project) more(ctx context.Context, g *tasks.Group, plan *engine.Plan) (int, error) {
	most := g.Design.BurnIn + g.Design.Max - g.Count() // further blocks that may be measured
	if most <= 0 {
		return 0, nil
	}
	told, all, err := p.stand(ctx, g, plan)
	if err != nil {
		return 0, err
	}
	more := 0
	for i := range p.Spec.Compares {
		if c := &p.Spec.Compares[i]; p.IsAbout(c, g) {
			k := findings.Case{Compare: c, Of: p.Of[c.Address], Allow: p.Allow}
			more = max(more, k.More(told, all))
		}
	}
	return min(most, more), nil
}

// wait keeps the others of a member's group from being measured in blocks without it, when only this time something is
// missing for it: all of them would be measured again with it.
func (p *Project) wait(g *tasks.Group, m tasks.Member, c tasks.Cause) {
	if _, apart := p.next.Alone[g.Name]; apart || g.Design.Pairing == "independent" {
		return
	}
	for _, other := range g.Members {
		address := other.Bench.Address.String()
		if _, known := p.next.Dropped[address]; !known && other.Name != m.Name {
			p.next.Dropped[address] = tasks.Absence{Outcome: stats.NotRun, Why: fmt.Sprintf(
				"it is measured in the same blocks as %s, for which %s is missing this time: "+
					"the next apply tries again, and with a skip block for %[1]s the others are measured without it",
				m.Candidate, c.Address)}
		}
	}
}

// cannot says why a member cannot be measured: something that it needs failed or cannot be made here.
func (p *Project) cannot(plan *engine.Plan, m tasks.Member) (tasks.Absence, bool) {
	for _, a := range tasks.WaitsOf(m, p.Probes[m.Candidate]) {
		step, ok := plan.Step(a.String())
		if !ok || a == m.Fill && step.Failure == nil { // what hinders a fill hinders the blocks
			continue
		}
		if gap, out := causeOf(plan, step); out {
			return gap, true
		}
	}
	if why := misfit(plan, m.Bench.Data); why != "" {
		return tasks.Absence{Outcome: stats.Failed, Why: why}, true
	}
	return tasks.Absence{}, false
}

// breaksBlocks says why a member cannot be measured: it made its blocks fail again and again.
func breaksBlocks(plan *engine.Plan, g *tasks.Group, m tasks.Member) (tasks.Absence, bool) {
	for _, t := range g.Trials {
		step, ok := plan.Step(t.At.String())
		if !ok || step.Failure == nil || m.Baseline || m.Candidate == "" {
			continue
		}
		if f := step.Failure.Failure; f.Class.Retried() && f.Subject == m.Candidate {
			return tasks.Absence{Outcome: stats.Infra, Why: findings.Explain(f)}, true
		}
	}
	return tasks.Absence{}, false
}

// causeOf finds the first node on the way to a step that has no result and cannot get one. A node with a result hinders
// no other, even if the user asked for another result.
func causeOf(plan *engine.Plan, step *engine.Step) (tasks.Absence, bool) {
	if step.Failure != nil {
		f := step.Failure.Failure
		if tasks.KnownIssue(f) {
			// it says all: the probe is no cause
			return tasks.Absence{Outcome: classOf(step.Node, f), Why: f.Message}, true
		}
		return tasks.Absence{Outcome: classOf(step.Node, f), Why: step.Node.Address + ": " + findings.Explain(f)}, true
	}
	if _, stored := step.Stored(); stored || step.Action != engine.Blocked && step.Action != engine.Skip {
		return tasks.Absence{}, false
	}
	for _, dep := range step.Node.Needs {
		if s, ok := plan.Step(dep.Address); ok {
			if gap, out := causeOf(plan, s); out {
				return gap, true
			}
		}
	}
	exclude := step.Node.Exclude
	switch {
	case step.Never:
		return tasks.Absence{Outcome: stats.Infeasible, Why: step.Reason}, true
	case exclude.Action != "":
		return tasks.Absence{Outcome: stats.NotRun, Why: step.Node.Address + " " + exclude.Reason}, true
	case step.Node.Lacks != nil:
		if lacks := step.Node.Lacks(); lacks != "" {
			return tasks.Absence{Outcome: stats.NotRun, Why: step.Node.Address + " " + lacks}, true
		}
	}
	return tasks.Absence{}, false
}

// pin takes over what downloads turned out to be into the lock. It returns whether anything was new.
func (p *Project) pin(plan *engine.Plan) bool {
	changed := false
	for i := range plan.Steps {
		url := tasks.Undeclared(plan.Steps[i].Node)
		if url == "" {
			continue
		}
		entry, stored := plan.Steps[i].Stored()
		at := slices.IndexFunc(entry.Files, func(f cache.File) bool { return f.Path == tasks.FileName(url) })
		if !stored || at < 0 || p.Lock.Fetches[url].SHA256 == entry.Files[at].SHA256 {
			continue
		}
		if p.Lock.Fetches == nil {
			p.Lock.Fetches = map[string]hclspec.FetchLock{}
		}
		p.Lock.Fetches[url] = hclspec.FetchLock{SHA256: entry.Files[at].SHA256, Size: entry.Files[at].Size}
		changed = true
	}
	return changed
}

// causeBehind finds the failed node behind the absence of a member; false when nothing failed.
func (p *Project) causeBehind(plan *engine.Plan, g *tasks.Group, m tasks.Member) (tasks.Cause, bool) {
	seen := map[string]bool{}
	var follow func(step *engine.Step) (tasks.Cause, bool)
	follow = func(step *engine.Step) (tasks.Cause, bool) {
		at := step.Node.Address
		if seen[at] {
			return tasks.Cause{}, false
		}
		seen[at] = true
		if step.Failure != nil {
			return tasks.Cause{Address: at, Attempt: *step.Failure}, true
		}
		if _, stored := step.Stored(); stored {
			return tasks.Cause{}, false
		}
		for _, dep := range step.Node.Needs {
			if s, ok := plan.Step(dep.Address); ok {
				if c, found := follow(s); found {
					return c, true
				}
			}
		}
		return tasks.Cause{}, false
	}
	for _, a := range tasks.WaitsOf(m, p.Probes[m.Candidate]) {
		if step, ok := plan.Step(a.String()); ok {
			if c, found := follow(step); found {
				return c, true
			}
		}
	}
	for _, t := range g.Trials {
		step, ok := plan.Step(t.At.String())
		if ok && step.Failure != nil && step.Failure.Failure.Subject == m.Candidate {
			return tasks.Cause{Address: t.At.String(), Attempt: *step.Failure}, true
		}
	}
	return tasks.Cause{}, false
}

// classOf is the class of a node's failure in terms of outcomes: whose fault it is.
func classOf(n *engine.Node, f *failure.Failure) stats.Outcome {
	switch {
	case f.Class.Retried():
		return stats.Infra
	case tasks.KnownIssue(f):
		return stats.Skipped
	case n.Kind == "fill": // it ran, as in a block
		return stats.Failed
	}
	return stats.BuildFailed
}

// noteMissing notes the blocks of a group that are not in the store: if they were, no member would be dropped.
func (p *Project) noteMissing(plan *engine.Plan, g *tasks.Group) {
	for _, t := range g.Trials {
		if step, ok := plan.Step(t.At.String()); ok {
			p.missed = append(p.missed, step.Asked().Keys...)
		}
	}
}

// findMisfits notes the tasks whose data asks for the one file of a result that is stored and has several, or none. The
// next round blocks them. It returns whether there is a new one.
func (p *Project) findMisfits(plan *engine.Plan) bool {
	found := false
	for i := range p.Spec.Tasks {
		address := p.Spec.Tasks[i].Address.String()
		if _, known := p.next.Misfits[address]; known {
			continue
		}
		if why := misfit(plan, p.Spec.Tasks[i].Data); why != "" {
			p.next.Misfits[address] = why
			found = true
		}
	}
	return found
}

// misfit says why a stored result cannot be laid out as the file asks for it; empty when all can, as far as is known.
func misfit(plan *engine.Plan, data []hclspec.Data) string {
	for _, item := range data {
		if item.Tree {
			continue
		}
		step, ok := plan.Step(item.Ref.String())
		if !ok {
			continue
		}
		// A remembered plan knows the digest of a result and not its files: then the node itself finds out.
		if m, stored := step.Stored(); stored && !m.Created.IsZero() {
			if message, remedy := shell.Unlaid(item, cache.Entry{Meta: m}); message != "" {
				return message + ": " + remedy
			}
		}
	}
	return ""
}
