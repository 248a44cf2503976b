package tasks

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/stats"
)

// adapt changes what the next round's graph is made from, by what the plan found: members that cannot take part leave
// their groups, and groups whose verdicts are open get more blocks. It returns whether anything changed.
func (p *Project) adapt(ctx context.Context, plan *engine.Plan) (bool, error) {
	changed := p.findMisfits(plan)
	for _, g := range p.groups {
		if _, apart := p.next.alone[g.name]; apart && g.complete(plan) {
			continue // nothing is judged
		} else if g.complete(plan) {
			changed = p.findIssues(plan, g) || changed
			more, err := p.more(ctx, g, plan)
			if err != nil {
				return false, err
			}
			if more > 0 {
				p.next.blocks[g.name] = g.count() + more
				changed = true
			}
			continue
		}
		if _, apart := p.next.alone[g.name]; !apart {
			same := p.identicals(plan, g)
			maps.Copy(p.next.dropped, same)
			changed = changed || len(same) > 0
		}
		wait := func() {} // once it is known which of the others cannot be measured at all
		for _, m := range g.members {
			address := m.bench.Address.String()
			if _, known := p.next.dropped[address]; known {
				continue
			}
			gap, lacks := p.cannot(plan, m)
			breaks := false
			if !lacks {
				gap, breaks = p.breaks(plan, g, m)
			}
			if lacks || breaks {
				p.next.dropped[address] = gap
				if c, failed := p.causeBehind(plan, g, m); failed {
					p.next.causes[address] = c
					if lacks && gap.Outcome == stats.Infra && !m.baseline {
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

// findIssues notes the members of a group with all its samples of which a probe says by now that a known issue is
// there, or whose code by now changes what is protected. Their blocks stay, since the others were measured in them, and
// their outcomes are those of members that were never measured. It returns whether there is a new one.
func (p *Project) findIssues(plan *engine.Plan, g *group) (found bool) {
	for _, m := range g.members {
		address := m.bench.Address.String()
		if _, known := p.next.issues[address]; known || p.excluded[m.candidate].Outcome != "" {
			continue
		}
		for _, probe := range p.probes[m.candidate] {
			step, ok := plan.Step(probe.String())
			if !ok || step.Failure == nil || !KnownIssue(step.Failure.Failure) &&
				!protectedFailure(step.Failure.Failure) {
				continue
			}
			p.next.issues[address], _ = p.causeOf(plan, step)
			found = true
		}
	}
	return found
}

// complete says that every sample of the group is in the store: in its block, or gathered from it before that was lost.
func (g *group) complete(plan *engine.Plan) bool {
	stored := func(a hclspec.Address) bool {
		step, ok := plan.Step(a.String())
		if ok {
			_, ok = step.Stored()
		}
		return ok
	}
	ungathered := func(m member) bool {
		_, out := g.absent[m.name]
		return !out && !stored(m.bench.Address)
	}
	lost := slices.ContainsFunc(g.trials, func(t findings.Block) bool { return !stored(t.At) })
	return len(g.trials) > 0 && !(lost && slices.ContainsFunc(g.members, ungathered))
}

// failedBlocks are, when failures are to be tried again, the blocks in which a member failed. They are in the store,
// for the samples of the others are good; so they are to be replaced.
func (p *drawing) failedBlocks(ctx context.Context, plan *engine.Plan, o PlanOptions) (map[string]bool, error) {
	if !o.RetryFailed {
		return nil, nil
	}
	failed := map[string]bool{}
	ends, err := p.ends(ctx, plan, p.groups...)
	if err != nil {
		return nil, err
	}
	for _, g := range p.groups {
		for _, t := range g.trials {
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
func (p *drawing) more(ctx context.Context, g *group, plan *engine.Plan) (int, error) {
	most := g.design.BurnIn + g.design.Max - g.count() // further blocks that may be measured
	if most <= 0 {
		return 0, nil
	}
	told, all, err := p.stand(ctx, g, plan)
	if err != nil {
		return 0, err
	}
	more := 0
	for i := range p.Spec.Compares {
		if c := &p.Spec.Compares[i]; p.isAbout(c, g) {
			k := findings.Case{Compare: c, Of: p.of[c.Address], Allow: p.Allow}
			more = max(more, k.More(told, all))
		}
	}
	return min(most, more), nil
}

// wait keeps the others of a member's group from being measured in blocks without it, when only this time something is
// missing for it: all of them would be measured again with it.
func (p *Project) wait(g *group, m member, c cause) {
	if _, apart := p.next.alone[g.name]; apart || g.design.Pairing == "independent" {
		return
	}
	for _, other := range g.members {
		address := other.bench.Address.String()
		if _, known := p.next.dropped[address]; !known && other.name != m.name {
			p.next.dropped[address] = absence{stats.NotRun,
				fmt.Sprintf("it is measured in the same blocks as %s, for which %s is missing this time: "+
					"the next apply tries again, and with a skip block for %[1]s the others are measured without it",
					m.candidate, c.address)}
		}
	}
}

// cannot says why a member cannot be measured: something that it needs failed or cannot be made here.
func (p *drawing) cannot(plan *engine.Plan, m member) (absence, bool) {
	for _, a := range waitsOf(m, p.probes[m.candidate]) {
		step, ok := plan.Step(a.String())
		if !ok || a == m.fill && step.Failure == nil { // what hinders a fill hinders the blocks
			continue
		}
		if gap, out := p.causeOf(plan, step); out {
			return gap, true
		}
	}
	if why := misfit(plan, m.bench.Data); why != "" {
		return absence{stats.Failed, why}, true
	}
	return absence{}, false
}

// breaks says why a member cannot be measured: it made its blocks fail again and again.
func (p *services) breaks(plan *engine.Plan, g *group, m member) (absence, bool) {
	for _, t := range g.trials {
		step, ok := plan.Step(t.At.String())
		if !ok || step.Failure == nil || m.baseline || m.candidate == "" {
			continue
		}
		if f := step.Failure.Failure; f.Class.Retried() && f.Subject == m.candidate {
			return absence{stats.Infra, findings.Explain(f)}, true
		}
	}
	return absence{}, false
}

// needsOf are the nodes whose results one member of a block runs.
func needsOf(m member) shell.Refs {
	var r shell.Refs
	addMember(&r, m)
	return r
}

// waitsOf are the nodes that come before a block with the member, beside those that it needs for the others.
func waitsOf(m member, probes []hclspec.Address) shell.Refs {
	r := needsOf(m)
	r.Add(m.fill)
	r.Add(probes...)
	return r
}

// causeOf follows what hinders a step to where it begins. What has a result hinders nobody, though it may be that
// another one was asked for.
func (p *services) causeOf(plan *engine.Plan, step *engine.Step) (absence, bool) {
	if step.Failure != nil {
		f := step.Failure.Failure
		if KnownIssue(f) {
			return absence{classOf(step.Node, f), f.Message}, true // it says all: the probe is no cause
		}
		return absence{classOf(step.Node, f), step.Node.Address + ": " + findings.Explain(f)}, true
	}
	if _, stored := step.Stored(); stored || step.Action != engine.Blocked && step.Action != engine.Skip {
		return absence{}, false
	}
	for _, dep := range step.Node.Needs {
		if s, ok := plan.Step(dep.Address); ok {
			if gap, out := p.causeOf(plan, s); out {
				return gap, true
			}
		}
	}
	exclude := step.Node.Exclude
	switch {
	case step.Never:
		return absence{stats.Infeasible, step.Reason}, true
	case exclude.Action != "":
		return absence{stats.NotRun, step.Node.Address + " " + exclude.Reason}, true
	case step.Node.Lacks != nil:
		if lacks := step.Node.Lacks(); lacks != "" {
			return absence{stats.NotRun, step.Node.Address + " " + lacks}, true
		}
	}
	return absence{}, false
}

// pin takes over what downloads turned out to be into the lock. It returns whether anything was new.
func (p *facts) pin(plan *engine.Plan) bool {
	changed := false
	for i := range plan.Steps {
		var t *downloadTask
		switch task := plan.Steps[i].Node.Task.(type) {
		case *downloadTask:
			t = task
		case *prebuiltTask:
			t = &task.downloadTask
		}
		if t == nil || t.declared != "" {
			continue
		}
		entry, stored := plan.Steps[i].Stored()
		at := slices.IndexFunc(entry.Files, func(f cache.File) bool { return f.Path == fileName(t.url) })
		if !stored || at < 0 || p.Lock.Fetches[t.url].SHA256 == entry.Files[at].SHA256 {
			continue
		}
		if p.Lock.Fetches == nil {
			p.Lock.Fetches = map[string]hclspec.FetchLock{}
		}
		p.Lock.Fetches[t.url] = hclspec.FetchLock{SHA256: entry.Files[at].SHA256, Size: entry.Files[at].Size}
		changed = true
	}
	return changed
}
