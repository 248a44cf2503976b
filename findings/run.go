package findings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// Run is what one run measured of a member.
type Run struct {
	Name   string
	Blocks []cache.Entry
}

// Runs compares the blocks of a member from one run with those from another. Both are parsed again by the same code;
// whether both were measured in the same way is in the records of the blocks. The runs share no block, so the rows have
// numbers and no verdict.
func (c *Case) Runs(g *Group, m *Member, one, against Run) ([]stats.Comparison, error) {
	s, err := m.in(one, g.Design.BurnIn)
	if err != nil {
		return nil, err
	}
	base, err := m.in(against, g.Design.BurnIn)
	if err != nil {
		return nil, err
	}
	row := stats.Comparison{Compare: c.Compare.Address.Instance(), Benchmark: m.Bench.Address.Name, Commit: g.Commit,
		Candidate: s.name(), Against: base.name(),
		Metric: m.Bench.Metrics.Primary, Primary: true, Caveats: changed(s, base)}
	switch {
	case base.failure != nil:
		row.Outcome, row.Reason = stats.NoBaseline, "it failed in run "+against.Name+": "+Explain(base.failure)
	case s.failure != nil:
		row.Outcome, row.Reason = stats.Failed, Explain(s.failure)
	case !s.measured() || !base.measured():
		row.Outcome, row.Reason = stats.NotRun, "no sample was taken in one of the runs"
	case s.silent || base.silent:
		row.Outcome, row.Reason = stats.NotComparable,
			fmt.Sprintf("%s and %s are not comparable: the blocks of one do not say how they were measured, since "+
				"they are of an earlier version", s.name(), base.name())
	}
	if row.Outcome != "" {
		return []stats.Comparison{row}, nil
	}
	row, refused := c.comparable(row, s, base)
	if refused {
		return []stats.Comparison{row}, nil
	}
	row.Attempts = attempts(s, base)
	apart := *g
	apart.Design.Pairing = stats.Runs
	rows, _ := c.verdicts(&apart, []contender{{s, row}}, base)
	return rows, nil
}

// in is how a member stands by the blocks of one run, of which the first ones are burn-in.
func (m *Member) in(run Run, burnIn int) (*standing, error) {
	s := newStanding(m)
	s.run, s.burnIn = run.Name, burnIn
	for i, e := range run.Blocks {
		rec, err := sample.ReadRecord(e)
		if err != nil {
			return nil, fmt.Errorf("block %d of run %s: %w", i+1, run.Name, err)
		}
		if err := s.read(e, rec); err != nil {
			return nil, fmt.Errorf("block %d of run %s: %w", i+1, run.Name, err)
		}
	}
	return s, nil
}

// changed says what the figures of two runs must carry: fixes that may change speed, and which of a candidate's own
// artefacts differ, for it may be called the same and be another one.
func changed(s, base *standing) []stats.Caveat {
	list := []stats.Caveat{}
	for _, name := range slices.Sorted(maps.Keys(s.procedure)) {
		if strings.HasPrefix(name, "fix ") {
			list = append(list, stats.Caveat{Kind: stats.CaveatFix, Text: name + " (" + s.procedure.of(name) + ")"})
		}
	}
	for _, node := range slices.Sorted(maps.Keys(s.artefacts)) {
		a, err := hclspec.ParseAddress(node)
		own, other := s.artefacts.of(node), base.artefacts.of(node)
		if err == nil && a.Key == s.candidate() && other != "" && own != other {
			list = append(list, stats.Caveat{Kind: stats.CaveatArtefact,
				Text: fmt.Sprintf("%s was another one: %s against %s", node, brief(own), brief(other))})
		}
	}
	return list
}

// brief is the beginning of a digest.
func brief(digest string) string {
	return digest[:min(len(digest), 12)]
}
