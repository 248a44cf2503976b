package tasks

import (
	"context"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// Findings judges every compare of the file by what is stored, parsed anew. It runs nothing.
func (p *drawing) Findings(ctx context.Context, plan *engine.Plan) ([]findings.Findings, error) {
	ends, err := p.ends(ctx, plan, p.groups...)
	if err != nil {
		return nil, err
	}
	all := make([]findings.Findings, 0, len(p.Spec.Compares))
	for i := range p.Spec.Compares {
		found, err := p.caseOf(&p.Spec.Compares[i]).Judge(ends)
		if err != nil {
			return nil, err
		}
		if err := p.account(&p.Spec.Compares[i], ends, &found); err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return all, nil
}

// Samples are all numbers that are stored of the plan's benchmarks, whether a compare judges them or not.
func (p *drawing) Samples(ctx context.Context, plan *engine.Plan) ([]sample.Measurement, error) {
	var rows []sample.Measurement
	for _, g := range p.groups {
		_, all, err := p.stand(ctx, g, plan)
		if err != nil {
			return nil, err
		}
		for _, m := range g.members {
			for _, row := range all.Measurements(m.name) {
				row.Of = m.bench.Address
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// caseOf is all that must be known to judge the candidates of a compare, beside how their blocks ended.
func (p *drawing) caseOf(c *hclspec.Compare) *findings.Case {
	k := &findings.Case{Compare: c, Of: p.of[c.Address], Uncovered: p.uncovered(c, p.groupsOf(c)), Rank: p.rank,
		Allow: p.Allow}
	for _, g := range p.groups {
		if p.isAbout(c, g) {
			k.Groups = append(k.Groups, *p.told(g))
		}
	}
	return k
}

// told is what a judge is told of a group.
func (p *drawing) told(g *group) *findings.Group {
	t := &findings.Group{Commit: g.commit, Design: g.design, Members: make([]findings.Member, len(g.members)),
		Blocks: g.trials, Rule: p.rule(g)}
	for i, m := range g.members {
		gap := g.absent[m.name]
		t.Members[i] = findings.Member{
			Name: m.name, Baseline: m.baseline, Bench: m.bench, Absent: gap.Outcome, Why: gap.Why,
			Methodology: p.methodology(m), Caveats: append(caveats(m), p.copiesOf(m)...), Tries: p.triesAt(g, m),
		}
		if c := p.candidates[m.candidate]; c != nil {
			t.Members[i].Patched = c.Patch != ""
		}
	}
	return t
}

// stand finds out how the members of a group stand by what is stored.
func (p *drawing) stand(ctx context.Context, g *group, plan *engine.Plan) (*findings.Group, findings.Standings, error) {
	ends, err := p.ends(ctx, plan, g)
	if err != nil {
		return nil, nil, err
	}
	told := p.told(g)
	all, err := told.Stand(ends)
	return told, all, err
}

// ends tells how what gathers from the blocks of groups stands by what is stored, and how the blocks themselves do,
// where not all was gathered.
func (p *facts) ends(ctx context.Context, plan *engine.Plan, groups ...*group) (map[string]engine.End, error) {
	ends := map[string]engine.End{}
	find := func(at hclspec.Address) (stored bool, err error) {
		step, ok := plan.Step(at.String())
		if !ok {
			return false, nil
		}
		end, err := plan.End(ctx, p.Store, step)
		if err == nil {
			ends[end.Address] = waitingEnd(end, p.WaitsFor(plan, step))
		}
		return end.Entry.Dir != "", err
	}
	for _, g := range groups {
		whole := true
		for _, m := range g.members {
			stored, err := find(m.bench.Address)
			if err != nil {
				return nil, err
			}
			whole = whole && stored
		}
		if whole {
			continue
		}
		for _, t := range g.trials {
			if _, err := find(t.At); err != nil {
				return nil, err
			}
		}
	}
	return ends, nil
}

// groupsOf are the groups with members among the compare's benchmarks, by name: the order of the file is in no key.
func (p *drawing) groupsOf(c *hclspec.Compare) []*group {
	var groups []*group
	for _, g := range p.groups {
		if p.isAbout(c, g) {
			groups = append(groups, g)
		}
	}
	slices.SortFunc(groups, func(a, b *group) int { return strings.Compare(a.name, b.name) })
	return groups
}

// isAbout says whether a compare names one of the group's benchmarks.
func (p *drawing) isAbout(c *hclspec.Compare, g *group) bool {
	of := p.of[c.Address]
	return slices.ContainsFunc(g.members, func(m member) bool { return of[m.bench.Address] })
}

// uncovered gives the candidates that no benchmark of the compare measures their outcome: no candidate of the file is
// ever dropped in silence.
func (p *drawing) uncovered(c *hclspec.Compare, groups []*group) []stats.Comparison {
	covered := map[string]bool{}
	for _, g := range groups {
		for _, m := range g.members {
			covered[m.candidate] = covered[m.candidate] || p.of[c.Address][m.bench.Address]
		}
	}
	var rows []stats.Comparison
	for i := range p.Spec.Candidates {
		cand := &p.Spec.Candidates[i]
		if cand.Baseline || covered[cand.Key] {
			continue
		}
		row := stats.Comparison{Compare: c.Address.Instance(), Commit: cand.Commit, Candidate: cand.Key, Primary: true,
			Outcome: stats.NotRun, Reason: "no benchmark of " + c.Address.String() + " measures it"}
		if gap, out := p.excluded[cand.Key]; out {
			row.Outcome, row.Reason = gap.Outcome, gap.Why
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b stats.Comparison) int { return strings.Compare(a.Candidate, b.Candidate) })
	return rows
}

// copiesOf says of a member that it was measured with files of the baseline.
func (p *drawing) copiesOf(m member) []stats.Caveat {
	patterns := p.copies[m.candidate]
	if len(patterns) == 0 {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatProtected, Text: "the files that match " + strings.Join(patterns, ", ") +
		" in the tree of " + m.candidate + " are those of the baseline"}}
}

// caveats are what every figure of a member must say: the fixes that it ran with, and that its artefacts were made
// with.
func caveats(m member) []stats.Caveat {
	var list []stats.Caveat
	for _, f := range m.allFixes() {
		text := "fix " + f.Fix.Address.Name + " (" + f.Fix.Effect + ")"
		if f.Fix.Caveat != "" {
			text += ": " + f.Fix.Caveat
		}
		list = append(list, stats.Caveat{Kind: stats.CaveatFix, Text: text})
	}
	return list
}
