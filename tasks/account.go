package tasks

import (
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/stats"
)

// accountVersion is part of a compare's key: another account is another result.
const accountVersion = "4"

// account adds to findings the failures behind them and what the attempts took. ends tells how blocks ended.
func (p *Drawing) Account(c *hclspec.Compare, ends map[string]engine.End, found *findings.Findings) error {
	a := accountant{Drawing: p, found: found, seen: map[string]bool{}}
	for _, g := range p.Groups {
		if !p.IsAbout(c, g) {
			continue
		}
		if err := a.group(g, ends); err != nil {
			return err
		}
	}
	return nil
}

type accountant struct {
	*Drawing
	found *findings.Findings
	seen  map[string]bool // IDs of attempts, and causes, that are in the account
}

func (a *accountant) group(g *Group, ends map[string]engine.End) error {
	for _, m := range g.Members {
		a.spend(g, WaitsOf(m, nil))
		gap, out := g.Absent[m.Name]
		if c, known := a.Causes[m.Bench.Address.String()]; out && known && gap.Outcome != stats.Skipped {
			a.add(findings.Failure{Address: c.Address, Commit: g.Commit, Candidate: m.Candidate,
				Failure: *c.Attempt.Failure, Attempt: c.Attempt.ID, Took: c.Attempt.Duration})
		}
	}
	for _, t := range g.Trials {
		a.spend(g, shell.Refs{t.At})
		if err := a.trial(g, t, ends[t.At.String()]); err != nil {
			return err
		}
	}
	for _, m := range g.Members {
		at := m.Bench.Address.String()
		told := slices.ContainsFunc(a.found.Failures, func(f findings.Failure) bool {
			return f.Candidate == m.Candidate && f.Commit == g.Commit
		})
		if f := ends[at].Failure; f != nil && !told { // gathering fails for what failed in a block
			a.add(findings.Failure{Address: at, Commit: g.Commit, Candidate: m.Candidate, Failure: *f})
		}
	}
	return nil
}

// trial adds what failed in a block: the block as a whole, or members of it.
func (a *accountant) trial(g *Group, t findings.Block, end engine.End) error {
	at := t.At.String()
	if f := end.Failure; f != nil {
		failed := findings.Failure{Address: at, Commit: g.Commit, Candidate: f.Subject, Failure: *f}
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
		failed := findings.Failure{Address: at, Commit: g.Commit, Failure: *own.Failure, Attempt: end.Entry.Log}
		for _, m := range g.Members {
			if m.Name == name {
				failed.Candidate = m.Candidate
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
func (a *accountant) spend(g *Group, nodes shell.Refs) {
	for _, at := range nodes {
		for _, attempt := range a.Journal.Attempts(at.String()) {
			if a.seen[attempt.ID] {
				continue
			}
			a.seen[attempt.ID] = true
			spent := findings.Spent{Attempt: attempt.ID, Took: attempt.Duration, GPUs: len(attempt.Devices),
				Failed: attempt.Failure != nil}
			if at.Kind == "trial" {
				spent.Block, spent.Benchmark, spent.Commit = true, at.Name, g.Commit
			}
			a.found.Spent = append(a.found.Spent, spent)
		}
	}
}
