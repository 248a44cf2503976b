package tasks

import (
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// caseOf is all that must be known to judge the candidates of a compare, beside how their blocks ended.
func (p *Drawing) CaseOf(c *hclspec.Compare) *findings.Case {
	k := &findings.Case{Compare: c, Of: p.Of[c.Address], Uncovered: p.uncovered(c, p.groupsOf(c)), Rank: p.rank,
		Allow: p.Allow}
	for _, g := range p.Groups {
		if p.IsAbout(c, g) {
			k.Groups = append(k.Groups, *p.Told(g))
		}
	}
	return k
}

// told is what a judge is told of a group.
func (p *Drawing) Told(g *Group) *findings.Group {
	t := &findings.Group{Commit: g.Commit, Design: g.Design, Members: make([]findings.Member, len(g.Members)),
		Blocks: g.Trials, Rule: p.rule(g)}
	for i, m := range g.Members {
		gap := g.Absent[m.Name]
		t.Members[i] = findings.Member{
			Name: m.Name, Baseline: m.Baseline, Bench: m.Bench, Absent: gap.Outcome, Why: gap.Why,
			Methodology: p.methodology(m), Caveats: append(caveats(m), p.copiesOf(m)...), Tries: p.triesAt(g, m),
		}
		if c := p.candidates[m.Candidate]; c != nil {
			t.Members[i].Patched = c.Patch != ""
		}
	}
	return t
}

// groupsOf are the groups with members among the compare's benchmarks, by name: the order of the file is in no key.
func (p *Drawing) groupsOf(c *hclspec.Compare) []*Group {
	var groups []*Group
	for _, g := range p.Groups {
		if p.IsAbout(c, g) {
			groups = append(groups, g)
		}
	}
	slices.SortFunc(groups, func(a, b *Group) int { return strings.Compare(a.Name, b.Name) })
	return groups
}

// isAbout says whether a compare names one of the group's benchmarks.
func (p *Drawing) IsAbout(c *hclspec.Compare, g *Group) bool {
	of := p.Of[c.Address]
	return slices.ContainsFunc(g.Members, func(m Member) bool { return of[m.Bench.Address] })
}

// uncovered gives the candidates that no benchmark of the compare measures their outcome: no candidate of the file is
// ever dropped in silence.
func (p *Drawing) uncovered(c *hclspec.Compare, groups []*Group) []stats.Comparison {
	covered := map[string]bool{}
	for _, g := range groups {
		for _, m := range g.Members {
			covered[m.Candidate] = covered[m.Candidate] || p.Of[c.Address][m.Bench.Address]
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
		if gap, out := p.Excluded[cand.Key]; out {
			row.Outcome, row.Reason = gap.Outcome, gap.Why
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b stats.Comparison) int { return strings.Compare(a.Candidate, b.Candidate) })
	return rows
}

// copiesOf says of a member that it was measured with files of the baseline.
func (p *Drawing) copiesOf(m Member) []stats.Caveat {
	patterns := p.copies[m.Candidate]
	if len(patterns) == 0 {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatProtected, Text: "the files that match " + strings.Join(patterns, ", ") +
		" in the tree of " + m.Candidate + " are those of the baseline"}}
}

// caveats are what every figure of a member must say: the fixes that it ran with, and that its artefacts were made
// with.
func caveats(m Member) []stats.Caveat {
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
