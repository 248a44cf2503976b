// Package findings turns samples into findings: it compares the members of groups by the results of their blocks and
// gives every candidate exactly one outcome. Its input is plain data: the declarations of the file and the ends of the
// nodes. It runs nothing.
package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/methodology"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// A Case is the input of a judgment: a compare and everything that is known of its groups.
type Case struct {
	Compare   *hclspec.Compare
	Of        map[hclspec.Address]bool // benchmark instances that the compare names
	Groups    []group.Group            // groups with these instances as members; benchmarks in the order of the file
	Uncovered []stats.Comparison       // outcomes of candidates that no group measures
	Rank      map[string]int           // place of each candidate in the file; the candidates of a commit are neighbours
	// methodology fields that may differ; every figure that is compared in spite of such a difference has a label
	Allow []string
}

// Findings are the results of a compare with their evidence: the material of a report.
type Findings struct {
	Compare      string               `json:"compare"`
	Universe     int                  `json:"universe"` // number of outcomes that the ledger must have
	Comparisons  []stats.Comparison   `json:"comparisons"`
	Measurements []sample.Measurement `json:"measurements"`
	States       []State              `json:"states"` // of all members of the groups
	// patched candidates against the unpatched candidates of the same commit; counted in no total
	Pairs    []stats.Comparison `json:"pairs"`
	Failures []Failed           `json:"failures"` // behind outcomes without figures, and of lost blocks
	Spent    []Spent            `json:"spent"`    // recorded attempts
}

// Judge gives all candidates of the case their outcomes. ends holds ends of nodes by address: of the benchmark nodes,
// which gather the numbers of all blocks, and of trials whose numbers no benchmark node has gathered. If the outcomes
// do not add up, the error is a *stats.RefusedError.
func (c *Case) Judge(ends map[string]engine.End) (Findings, error) {
	found := Findings{Compare: c.Compare.Address.Instance(), Comparisons: []stats.Comparison{},
		Measurements: []sample.Measurement{}}
	standings := make([]group.Standings, len(c.Groups))
	for i := range c.Groups {
		var err error
		if standings[i], err = c.Groups[i].Stand(ends); err != nil {
			return found, err
		}
	}
	c.share(standings, ends)
	for i := range c.Groups {
		g, all := &c.Groups[i], standings[i]
		rows, _ := c.judge(g, all)
		for j := range g.Members {
			m := &g.Members[j]
			found.Measurements = append(found.Measurements, all[m.Name].Rows...)
			if c.judges(m) {
				found.Universe++
			}
		}
		found.Comparisons = append(found.Comparisons, rows...)
		found.States = append(found.States, c.states(g, all)...)
		found.Pairs = append(found.Pairs, c.pairs(g, all)...)
	}
	found.Comparisons = append(found.Comparisons, c.Uncovered...)
	found.Universe += len(c.Uncovered)
	slices.SortStableFunc(found.Comparisons, c.order())
	ledger := stats.Ledger{Universe: found.Universe, Rows: found.Comparisons}
	return found, ledger.Check()
}

// order compares rows by commit, benchmark and candidate, in the order of the file. Rows of one candidate keep their
// order, with the primary metric first.
func (c *Case) order() func(a, b stats.Comparison) int {
	place := map[string]int{"": len(c.Groups)} // of each benchmark; "" stands for candidates that no benchmark measures
	for i := range c.Groups {
		for _, m := range c.Groups[i].Members {
			if _, known := place[m.Bench.Address.Name]; !known {
				place[m.Bench.Address.Name] = i
			}
		}
	}
	return func(a, b stats.Comparison) int {
		candidates := cmp.Compare(c.Rank[a.Candidate], c.Rank[b.Candidate])
		if a.Commit != b.Commit {
			return candidates
		}
		return cmp.Or(cmp.Compare(place[a.Benchmark], place[b.Benchmark]), candidates)
	}
}

// More returns the number of further blocks that the open verdicts of a group ask for.
func (c *Case) More(g *group.Group, all group.Standings) int {
	_, more := c.judge(g, all)
	return more
}

// judges reports whether the case must give a member an outcome: whether the compare names the benchmark of the
// candidate. The baseline gets none, since it is the reference of the others.
func (c *Case) judges(m *group.Member) bool {
	return m.Candidate() != "" && !m.Baseline && c.Of[m.Bench.Address]
}

// judge returns rows that give every candidate of a group exactly one outcome on the primary metric, rows for the other
// metrics, and the number of further blocks that the open verdicts ask for.
func (c *Case) judge(g *group.Group, all group.Standings) ([]stats.Comparison, int) {
	base := all.Baseline(g)
	var rows []stats.Comparison
	var fit []contender
	for i := range g.Members {
		m := &g.Members[i]
		if !c.judges(m) {
			continue
		}
		if row, decided := c.withoutFigures(g, all[m.Name], base); decided {
			rows = append(rows, row)
		} else {
			fit = append(fit, contender{all[m.Name], row})
		}
	}
	if len(fit) == 0 {
		return rows, 0
	}
	judged, more := c.verdicts(g, fit, base)
	return append(rows, judged...), more
}

// Pair compares two members of a group. Neither of them has to be the baseline.
func (c *Case) Pair(g *group.Group, all group.Standings, one, against string) []stats.Comparison {
	s, base := all[one], all[against]
	row, decided := c.withoutFigures(g, s, base)
	if decided {
		return []stats.Comparison{row}
	}
	rows, _ := c.verdicts(g, []contender{{s, row}}, base)
	return rows
}

// withoutFigures returns the row of a candidate whose outcome is decided without figures, and true. For another
// candidate it returns the common part of its rows, and false.
func (c *Case) withoutFigures(g *group.Group, s, base *group.Standing) (stats.Comparison, bool) {
	row := stats.Comparison{Compare: c.Compare.Address.Instance(), Benchmark: s.Bench.Address.Name, Commit: g.Commit,
		Candidate: s.Candidate(), Metric: s.Bench.Metrics.Primary, Primary: true}
	row.Caveats = slices.Concat(fixed(s, base), s.Caveats)
	if base != nil {
		row.Against = base.Candidate()
	}
	row.Attempts = attempts(s, base)
	var decided bool
	row.Outcome, row.Reason, decided = outcome(s, base)
	if decided && row.Outcome == stats.NotRun && base != nil {
		// Members with different methodologies are not comparable, even before they are measured.
		if diff, _ := methodology.Compatible(s.Methodology, base.Methodology, c.Allow); len(diff) > 0 {
			row.Outcome, row.Reason = stats.NotComparable, methodology.Refuse(s.Title(), base.Title(), diff).Error()
		}
	}
	if decided {
		row.Caveats = append(row.Caveats, identicalCaveat(row)...)
		return row, true
	}
	return c.comparable(row, s, base)
}

// outcome returns the outcome of a candidate that needs no figures, with the reason. The first case that holds decides.
// The bool is false if figures must decide.
func outcome(s, base *group.Standing) (stats.Outcome, string, bool) {
	switch {
	case s.Absent == stats.Skipped || s.Absent == stats.NoPatch:
		return s.Absent, s.Why, true
	case s.Never != "":
		return stats.Infeasible, s.Never, true
	case s.Absent == stats.Infeasible:
		return s.Absent, s.Why, true
	case base == nil:
		return stats.NoBaseline, "the benchmark has no baseline for this commit", true
	case base.Failure != nil:
		return stats.NoBaseline, "the baseline failed: " + failed(base), true
	case base.Infra != nil && base.Infra.Subject != "":
		return stats.NoBaseline, "the baseline could not be measured: " + base.Infra.Text(), true
	case unmade(base) && (s.Absent == stats.BuildFailed || s.Absent == stats.Tie):
		return stats.NoBaseline, "the baseline is missing: " + base.Why, true
	case s.Absent != "":
		return s.Absent, s.Why, true
	case s.Spared():
		return stats.Tie, SameBytes(s.OwnArtefacts(nil)), true
	case s.Failure != nil && s.Failure.Rule == sample.Wrong && base.Measured():
		return stats.Wrong, failed(s), true
	case s.Failure != nil && base.Measured():
		return stats.Failed, failed(s), true
	case s.Infra != nil:
		return stats.Infra, Explain(s.Infra), true
	case s.Pending != "" || !s.Measured() || !base.Measured():
		return stats.NotRun, cmp.Or(s.Pending, "no sample has been taken"), true
	}
	return "", "", false
}

// unmade reports whether a member cannot be measured for a reason that no other member of its block can change.
func unmade(s *group.Standing) bool {
	return s.Absent != "" && s.Absent != stats.NotRun && s.Absent != stats.Tie
}

// failed describes the failure of a member. It names the block if other blocks failed in other ways.
func failed(s *group.Standing) string {
	text := Explain(s.Failure)
	if s.FailedIn > 0 && slices.ContainsFunc(s.Lost, func(f *failure.Failure) bool { return Explain(f) != text }) {
		text = fmt.Sprintf("block %d of %d that failed: %s", s.FailedIn, len(s.Lost), text)
	}
	return text
}

// Explain returns a failure in one line: message, rule or "undiagnosed", and the evidence unless the message contains
// it.
func Explain(f *failure.Failure) string {
	text := f.Message + " [" + cmp.Or(f.Rule, "undiagnosed") + "]"
	if !strings.Contains(f.Message, f.Evidence) {
		text += ": " + f.Evidence
	}
	return text
}
