package tasks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/doubt"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell/input"
	"github.com/benchgraph/benchgraph/source/git"
	"github.com/benchgraph/benchgraph/stats"
)

// accountVersion is part of a compare's key: another way to account gives another result.
const accountVersion = "7"

// Account adds to findings their failures and the cost of attempts. ends gives the ends of blocks, by address.
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
	seen  map[string]bool // IDs of attempts and of failures that are in the account
}

func (a *accountant) group(g *Group, ends map[string]engine.End) error {
	for _, m := range g.Members {
		a.spend(g, WaitsOf(m, nil))
		gap, out := g.Absent[m.Name]
		if c, known := a.Causes[m.Bench.Address.String()]; out && known && gap.Outcome != stats.Skipped {
			a.add(findings.Failed{Address: c.Address, Commit: g.Commit, Candidate: m.Candidate,
				Failure: *c.Attempt.Failure, Attempt: c.Attempt.ID, Took: c.Attempt.Duration})
		}
	}
	for _, t := range g.Trials {
		a.spend(g, input.Refs{t.At})
		if err := a.trial(g, t, ends[t.At.String()]); err != nil {
			return err
		}
	}
	for _, m := range g.Members {
		at := m.Bench.Address.String()
		reported := slices.ContainsFunc(a.found.Failures, func(f findings.Failed) bool {
			return f.Candidate == m.Candidate && f.Commit == g.Commit
		})
		if f := ends[at].Failure; f != nil && !reported { // a gather node fails when a block did
			a.add(a.addLastAttempt(findings.Failed{Address: at, Commit: g.Commit, Candidate: m.Candidate, Failure: *f}))
		}
	}
	return nil
}

// trial adds the failures of a block: of the block as a whole, or of its members.
func (a *accountant) trial(g *Group, t group.Block, end engine.End) error {
	at := t.At.String()
	if f := end.Failure; f != nil {
		candidate := f.Subject
		for _, m := range g.Members {
			if f.IsAbout(m.Candidate) {
				candidate = m.Candidate
			}
		}
		a.add(a.addLastAttempt(findings.Failed{Address: at, Commit: g.Commit, Candidate: candidate, Failure: *f}))
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
		failed := findings.Failed{Address: at, Commit: g.Commit, Failure: *own.Failure, Attempt: end.Entry.Log}
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

// addLastAttempt adds to a node's failure the ID and duration of the last failed attempt there.
func (a *accountant) addLastAttempt(f findings.Failed) findings.Failed {
	for _, attempt := range slices.Backward(a.Journal.Attempts(f.Address)) {
		if attempt.Failure != nil && !attempt.Interrupted() {
			f.Attempt, f.Took = attempt.ID, attempt.Duration
			break
		}
	}
	return f
}

// add adds a failure once: several members may have the same cause.
func (a *accountant) add(f findings.Failed) {
	id := fmt.Sprintf("%s %s %s %s", f.Address, f.Candidate, f.Attempt, f.Failure.Message)
	if !a.seen[id] {
		a.seen[id] = true
		a.found.Failures = append(a.found.Failures, f)
	}
}

// spend adds the recorded attempts at some nodes: those that members of a group need, or its blocks.
func (a *accountant) spend(g *Group, nodes input.Refs) {
	for _, at := range nodes {
		for _, attempt := range a.Journal.Attempts(at.String()) {
			if a.seen[attempt.ID] {
				continue
			}
			a.seen[attempt.ID] = true
			spent := findings.Spent{Attempt: attempt.ID, Took: attempt.Duration, GPUs: len(attempt.Devices),
				Hardware: attempt.Hardware, Failed: attempt.Failure != nil}
			if spent.Block = at.Kind == "trial"; spent.Block || at.Kind == "fill" {
				spent.Benchmark, spent.Commit = at.Name, g.Commit
			}
			a.found.Spent = append(a.found.Spent, spent)
		}
	}
}

// CaseOf returns all that a judge needs for the candidates of a compare, except the ends of blocks.
func (p *Drawing) CaseOf(c *hclspec.Compare) *findings.Case {
	k := &findings.Case{Compare: c, Of: p.Of[c.Address], Uncovered: p.uncovered(c, p.groupsOf(c)), Rank: p.rank,
		Allow: p.Allow}
	for _, g := range p.Groups {
		if p.IsAbout(c, g) {
			k.Groups = append(k.Groups, *p.ForJudge(g))
		}
	}
	return k
}

// ForJudge returns a group as a judge sees it.
func (p *Drawing) ForJudge(g *Group) *group.Group {
	t := &group.Group{Commit: g.Commit, Design: g.Design, Members: make([]group.Member, len(g.Members)),
		Blocks: g.Trials, Rule: p.rule(g)}
	for i, m := range g.Members {
		gap := g.Absent[m.Name]
		t.Members[i] = group.Member{
			Name: m.Name, Baseline: m.Baseline, Bench: m.Bench, Absent: gap.Outcome, Why: gap.Why,
			Methodology: p.methodology(m), Fixes: p.fixesOf(m), Caveats: p.measuring(m), Tries: p.triesAt(g, m),
		}
		if c := p.candidates[m.Candidate]; c != nil {
			t.Members[i].Patched = c.Patch != ""
		}
	}
	return t
}

// groupsOf returns the compare's groups, sorted by name: keys must not depend on the order of the file.
func (p *Drawing) groupsOf(c *hclspec.Compare) []*Group {
	groups := slices.DeleteFunc(slices.Clone(p.Groups), func(g *Group) bool { return !p.IsAbout(c, g) })
	slices.SortFunc(groups, func(a, b *Group) int { return strings.Compare(a.Name, b.Name) })
	return groups
}

// IsAbout reports whether a compare names one of the group's benchmarks.
func (p *Drawing) IsAbout(c *hclspec.Compare, g *Group) bool {
	of := p.Of[c.Address]
	return slices.ContainsFunc(g.Members, func(m Member) bool { return of[m.Bench.Address] })
}

// uncovered returns outcomes for the candidates that no benchmark of the compare measures: no candidate of the file is
// dropped in silence.
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
		row := stats.Comparison{Compare: c.Address.Instance(), Commit: cand.Commit, Candidate: cand.Key, Primary: true}
		row.Outcome, row.Reason = stats.NotRun, "no benchmark of "+c.Address.String()+" measures it"
		if gap, out := p.Excluded[cand.Key]; out {
			row.Outcome, row.Reason = gap.Outcome, gap.Why
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b stats.Comparison) int { return strings.Compare(a.Candidate, b.Candidate) })
	return rows
}

// measuring returns caveats about the files that measure a member: the baseline's, or its own patched ones.
func (p *Drawing) measuring(m Member) (list []stats.Caveat) {
	add := func(text string) { list = append(list, stats.Caveat{Kind: stats.CaveatProtected, Text: text}) }
	if patterns := p.copies[m.Candidate]; len(patterns) > 0 {
		add("the files that match " + strings.Join(patterns, ", ") + " in the tree of " + m.Candidate +
			" are those of the baseline")
	}
	if brings := p.brings(m); len(brings) > 0 {
		add("the patch of " + m.Candidate + " changes " + strings.Join(brings, ", ") + ", which the measured command " +
			"names or runs: it changes how it is measured")
	}
	return list
}

// brings returns the files that a member's patch changes and its command runs, unless protect covers the candidate.
func (p *Drawing) brings(m Member) []string {
	c := p.candidates[m.Candidate]
	if c == nil || c.Patch == "" || m.Baseline || len(p.copies[c.Key]) > 0 ||
		slices.Contains(p.Probes[c.Key], c.Source) { // both mean that the source has protect
		return nil
	}
	text, _ := p.patchText(c.Patch) // another place reports the error
	changed, _ := git.TouchedPaths(text)
	return doubt.Brings(m.Bench, changed, p.ownArtefact)
}

// fixesOf returns the fixes that a member ran with, and those that its artefacts were made with.
func (p *Drawing) fixesOf(m Member) []group.Fix {
	var list []group.Fix
	for _, f := range m.allFixes() {
		list = append(list, group.Fix{Name: f.Fix.Address.Name, Effect: f.Fix.Effect, Caveat: f.Fix.Caveat,
			Recipe: f.Recipe(p.sameFor(p.tracesOf))})
	}
	return list
}
