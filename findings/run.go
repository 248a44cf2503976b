package findings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/internal/words"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// Run is the blocks of a member that one run measured.
type Run struct {
	Name   string
	Blocks []cache.Entry
}

// Runs compares the blocks of a member from one run with the blocks from another. The same code parses the raw output
// of both; the records of the blocks tell whether both runs had the same methodology. The runs share no block, so the
// rows have numbers and no verdict.
func (c *Case) Runs(g *group.Group, m *group.Member, one, against Run) ([]stats.Comparison, error) {
	s, err := m.In(one.Name, one.Blocks, g.Design.BurnIn)
	if err != nil {
		return nil, err
	}
	base, err := m.In(against.Name, against.Blocks, g.Design.BurnIn)
	if err != nil {
		return nil, err
	}
	row := stats.Comparison{Compare: c.Compare.Address.Instance(), Benchmark: m.Bench.Address.Name, Commit: g.Commit,
		Candidate: s.Title(), Against: base.Title(),
		Metric: m.Bench.Metrics.Primary, Primary: true}
	row.Caveats = changed(s, base)
	switch {
	case base.Failure != nil:
		row.Outcome, row.Reason = stats.NoBaseline, "it failed in run "+against.Name+": "+Explain(base.Failure)
	case s.Failure != nil:
		row.Outcome, row.Reason = stats.Failed, Explain(s.Failure)
	case !s.Measured() || !base.Measured():
		row.Outcome, row.Reason = stats.NotRun, "no sample was taken in one of the runs"
	case s.Silent || base.Silent:
		row.Outcome, row.Reason = stats.NotComparable,
			fmt.Sprintf("%s and %s are not comparable: the records of one run have no methodology, since an "+
				"earlier version measured it", s.Title(), base.Title())
	}
	if row.Outcome != "" {
		return []stats.Comparison{row}, nil
	}
	row, refused := c.comparable(row, s, base)
	if refused {
		return []stats.Comparison{row}, nil
	}
	row.Attempts = attempts(s, base)
	unshared := *g
	unshared.Design.Pairing = stats.Runs
	rows, _ := c.verdicts(&unshared, []contender{{s, row}}, base)
	return rows, nil
}

// changed returns the caveats of a comparison of two runs: fixes that may change speed, and artefacts of the candidate
// that have the same name and different digests.
func changed(s, base *group.Standing) []stats.Caveat {
	list := []stats.Caveat{}
	for _, name := range slices.Sorted(maps.Keys(s.Procedure)) {
		if strings.HasPrefix(name, "fix ") {
			list = append(list, stats.Caveat{Kind: stats.CaveatFix, Text: name + " (" + s.Procedure.Of(name) + ")"})
		}
	}
	for _, node := range slices.Sorted(maps.Keys(s.Artefacts)) {
		a, err := hclspec.ParseAddress(node)
		own, other := s.Artefacts.Of(node), base.Artefacts.Of(node)
		if err == nil && a.Key == s.Candidate() && other != "" && own != other {
			list = append(list, stats.Caveat{Kind: stats.CaveatArtefact,
				Text: fmt.Sprintf("%s was another one: %s against %s", node, words.Brief(own), words.Brief(other))})
		}
	}
	return list
}
