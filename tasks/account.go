package tasks

import (
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/stats"
)

// accountVersion is part of a compare's key: another account is another result.
const accountVersion = "4"

// cause is the failed attempt for which a member takes no part in its blocks.
type cause struct {
	address string
	attempt cache.Attempt
}

// causeBehind finds the failed node behind the absence of a member; false when nothing failed.
func (p *drawing) causeBehind(plan *engine.Plan, g *group, m member) (cause, bool) {
	seen := map[string]bool{}
	var follow func(step *engine.Step) (cause, bool)
	follow = func(step *engine.Step) (cause, bool) {
		at := step.Node.Address
		if seen[at] {
			return cause{}, false
		}
		seen[at] = true
		if step.Failure != nil {
			return cause{at, *step.Failure}, true
		}
		if _, stored := step.Stored(); stored {
			return cause{}, false
		}
		for _, dep := range step.Node.Needs {
			if s, ok := plan.Step(dep.Address); ok {
				if c, found := follow(s); found {
					return c, true
				}
			}
		}
		return cause{}, false
	}
	for _, a := range waitsOf(m, p.probes[m.candidate]) {
		if step, ok := plan.Step(a.String()); ok {
			if c, found := follow(step); found {
				return c, true
			}
		}
	}
	for _, t := range g.trials {
		step, ok := plan.Step(t.At.String())
		if ok && step.Failure != nil && step.Failure.Failure.Subject == m.candidate {
			return cause{t.At.String(), *step.Failure}, true
		}
	}
	return cause{}, false
}

// account adds to findings the failures behind them and what the attempts took. ends tells how blocks ended.
func (p *drawing) account(c *hclspec.Compare, ends map[string]engine.End, found *findings.Findings) error {
	a := accountant{drawing: p, found: found, seen: map[string]bool{}}
	for _, g := range p.groups {
		if !p.isAbout(c, g) {
			continue
		}
		if err := a.group(g, ends); err != nil {
			return err
		}
	}
	return nil
}

type accountant struct {
	*drawing
	found *findings.Findings
	seen  map[string]bool // IDs of attempts, and causes, that are in the account
}

func (a *accountant) group(g *group, ends map[string]engine.End) error {
	for _, m := range g.members {
		a.spend(g, waitsOf(m, nil))
		gap, out := g.absent[m.name]
		if c, known := a.causes[m.bench.Address.String()]; out && known && gap.Outcome != stats.Skipped {
			a.add(findings.Failure{Address: c.address, Commit: g.commit, Candidate: m.candidate,
				Failure: *c.attempt.Failure, Attempt: c.attempt.ID, Took: c.attempt.Duration})
		}
	}
	for _, t := range g.trials {
		a.spend(g, shell.Refs{t.At})
		if err := a.trial(g, t, ends[t.At.String()]); err != nil {
			return err
		}
	}
	for _, m := range g.members {
		at := m.bench.Address.String()
		told := slices.ContainsFunc(a.found.Failures, func(f findings.Failure) bool {
			return f.Candidate == m.candidate && f.Commit == g.commit
		})
		if f := ends[at].Failure; f != nil && !told { // gathering fails for what failed in a block
			a.add(findings.Failure{Address: at, Commit: g.commit, Candidate: m.candidate, Failure: *f})
		}
	}
	return nil
}

// trial adds what failed in a block: the block as a whole, or members of it.
func (a *accountant) trial(g *group, t findings.Block, end engine.End) error {
	at := t.At.String()
	if f := end.Failure; f != nil {
		failed := findings.Failure{Address: at, Commit: g.commit, Candidate: f.Subject, Failure: *f}
		for _, attempt := range slices.Backward(a.Journal.Attempts(at)) {
			if attempt.Failure != nil {
				failed.Attempt, failed.Took = attempt.ID, attempt.Duration
				break
			}
		}
		a.add(failed)
		return nil
	}
	if end.Entry.Dir == "" {
		return nil
	}
	rec, err := sample.ReadRecord(end.Entry)
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	for _, name := range sortedKeys(rec.Members) {
		own := rec.Members[name]
		if own.Failure == nil {
			continue
		}
		failed := findings.Failure{Address: at, Commit: g.commit, Failure: *own.Failure, Attempt: end.Entry.Log}
		for _, m := range g.members {
			if m.name == name {
				failed.Candidate = m.candidate
			}
		}
		for _, attempt := range a.Journal.Attempts(at) {
			if attempt.ID == failed.Attempt {
				failed.Took = attempt.Duration
			}
		}
		a.add(failed)
	}
	return nil
}

// add adds a failure once, though several members may stand under one cause.
func (a *accountant) add(f findings.Failure) {
	id := fmt.Sprintf("%s %s %s %s", f.Address, f.Candidate, f.Attempt, f.Failure.Message)
	if !a.seen[id] {
		a.seen[id] = true
		a.found.Failures = append(a.found.Failures, f)
	}
}

// spend adds the recorded attempts at nodes that members of a group need, or at its blocks.
func (a *accountant) spend(g *group, nodes shell.Refs) {
	for _, at := range nodes {
		for _, attempt := range a.Journal.Attempts(at.String()) {
			if a.seen[attempt.ID] {
				continue
			}
			a.seen[attempt.ID] = true
			spent := findings.Spent{Attempt: attempt.ID, Took: attempt.Duration, GPUs: len(attempt.Devices),
				Failed: attempt.Failure != nil}
			if at.Kind == "trial" {
				spent.Block, spent.Benchmark, spent.Commit = true, at.Name, g.commit
			}
			a.found.Spent = append(a.found.Spent, spent)
		}
	}
}

// reported are the commits as reports show them; none where there is no report.
func (p *facts) reported() []hclspec.Commit {
	if len(p.Spec.Reports) == 0 {
		return nil
	}
	commits := make([]hclspec.Commit, len(p.Spec.Commits))
	for i := range p.Spec.Commits {
		c := &p.Spec.Commits[i]
		commits[i] = hclspec.Commit{Name: c.Name, Title: c.Title, Rev: c.Rev, Parent: c.Parent, Params: c.Params}
	}
	return commits
}
