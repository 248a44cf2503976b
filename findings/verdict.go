package findings

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/benchgraph/benchgraph/findings/doubt"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// contender is a member whose outcome is decided by figures.
type contender struct {
	*group.Standing
	row stats.Comparison // the common part of its rows
}

// verdicts judges the contenders together, metric by metric. It returns the rows, and how many more blocks the open
// verdicts on the primary metric ask for.
func (c *Case) verdicts(g *group.Group, fit []contender, base *group.Standing) ([]stats.Comparison, int) {
	var rows []stats.Comparison
	more := 0
	for _, metric := range metricsOf(c.Compare, fit, base) {
		better, known := sample.Better(base.Bench.Metrics, metric, base.Units[metric])
		primary := metric == base.Bench.Metrics.Primary
		if !known && !primary {
			continue
		}
		judged, refused := sides(metric, fit, base)
		rows = append(rows, refused...)
		rule := ruleOf(c.Compare, g, base, metric, better)
		contrasts := make([][]stats.Pair, len(judged))
		for i, s := range judged {
			own := s.InUnit(metric, base.Units[metric])
			if rule.Pairing == stats.Runs {
				contrasts[i] = unpaired(own, base.Series[metric])
			} else {
				contrasts[i] = pairs(own, base.Series[metric], s.Standing, base)
			}
		}
		for i, v := range stats.JudgeTogether(contrasts, rule) {
			row := judged[i].row
			row.Metric, row.Primary, row.Unit = metric, primary, base.Units[metric]
			v.Caveats = slices.Concat(row.Caveats, v.Caveats)
			row.Verdict = v
			row = c.qualify(g, row, judged, i, base)
			rows = append(rows, row)
			if primary && row.Outcome == stats.Inconclusive {
				more = max(more, row.More)
			}
		}
	}
	return rows, more
}

// sides returns the contenders whose numbers on a metric may be compared with the baseline's, and rows for the others.
// On the primary metric all contenders were checked before.
func sides(metric string, fit []contender, base *group.Standing) (judged []contender, refused []stats.Comparison) {
	for _, s := range fit {
		why := gap(metric, s.Standing, base)
		if why == "" || metric == base.Bench.Metrics.Primary {
			judged = append(judged, s)
			continue
		}
		row := s.row
		row.Metric, row.Primary, row.Unit, row.Outcome, row.Reason = metric, false, base.Units[metric],
			stats.NotComparable, why
		refused = append(refused, row)
	}
	return judged, refused
}

// qualify adjusts a verdict by the evidence of its samples: losses on one side alone, or identical artefacts, decide
// the row; other evidence becomes a caveat.
func (c *Case) qualify(
	g *group.Group, row stats.Comparison, judged []contender, i int, base *group.Standing,
) stats.Comparison {
	s := judged[i].Standing
	if unit := s.Units[row.Metric]; unit != row.Unit {
		row.Caveats = append(row.Caveats, stats.Caveat{Kind: stats.CaveatUnit,
			Text: fmt.Sprintf("%s was printed in %s by %s and converted into %s", row.Metric, unit, s.Title(),
				row.Unit)})
	}
	row.Caveats = append(row.Caveats, doubt.Warnings(row.Metric, row.Primary, s, base)...)
	row.Caveats = append(row.Caveats, doubt.FewRequests(row.Metric, s, base)...)
	row.Caveats = append(row.Caveats, doubt.Contradictions(row.Metric, s, base)...)
	if row.Primary {
		if same := sameWork(row, s, base); same != nil {
			row.Caveats = append(row.Caveats, same...)
			row.Detectable, row.Needed = 0, 0 // more blocks cannot settle it
		}
		all := []*group.Standing{base}
		for _, other := range judged {
			all = append(all, other.Standing)
		}
		row.Caveats = append(row.Caveats, doubt.Constant(row.Metric, all, []*group.Standing{base, s}, row.Unit)...)
		row.Caveats = append(row.Caveats, doubt.FailedRequests(s, base)...)
		row.Caveats = append(row.Caveats, doubt.Complaints(s, base)...)
		row.Caveats = append(row.Caveats, doubt.OneSided(s, base)...)
		if s.Run == "" {
			row.Caveats = append(row.Caveats, history(row.Attempts, s, base)...)
			row.Caveats = append(row.Caveats, shared(s, base)...)
			row.Caveats = append(row.Caveats, doubt.Clock(row, s, base)...)
			row.Caveats = append(row.Caveats, doubt.Streams(row, s, base)...)
			row.Caveats = append(row.Caveats, doubt.Spread(row, s, base)...)
			row.Caveats = append(row.Caveats, doubt.Ready(row, s, base)...)
			row.Caveats = append(row.Caveats, doubt.Servers(s, base)...)
		}
	}
	if s.Run == "" {
		row.Caveats = append(row.Caveats, c.ruleChanged(row, g.Rule, s, base)...)
	}
	if s.Run != "" || !row.Outcome.Judged() {
		return row
	}
	if same := identical(s, base); same != "" && !mismatched(row) && row.Blocks >= stats.FewestBlocks {
		row.Outcome, row.Reason = stats.Tie, "identical artefact: both sides ran the same bytes ("+same+")"
		row.Caveats = append(row.Caveats, stats.Caveat{Kind: stats.CaveatIdentical,
			Text: "both sides ran the same bytes (" + same + "): the change reaches nothing that is installed, or " +
				"one of them is the artefact of another commit; the figures show only noise"})
	}
	last := slices.Max(append([]int{0}, row.Looks...))
	reason, failed, passes := survivorship(row.Attempts, s, base, last-row.Blocks)
	if reason == "" {
		return row
	}
	if passes && row.Outcome != stats.Inconclusive { // the verdict of an inconclusive row has set More
		row.More = stats.Next(row.Looks, row.Blocks)
		reason += fmt.Sprintf("; open after %d of at most %d blocks", row.Blocks, last)
	}
	row.Outcome, row.Reason = stats.Inconclusive, reason
	row.Detectable, row.Needed = 0, 0 // more blocks with such losses cannot settle it
	if failed {
		row.Outcome = stats.Failed
	}
	return row
}

// mismatched reports whether the user let the methodologies differ.
func mismatched(row stats.Comparison) bool {
	return slices.ContainsFunc(row.Caveats, func(c stats.Caveat) bool { return c.Kind == stats.CaveatMismatch })
}

// metricsOf returns the metrics to judge: the primary first, then the metrics that the compare names or, if it names
// none, all metrics of the baseline, each once. A mean over one benchmark is the number of that benchmark under another
// name.
func metricsOf(c *hclspec.Compare, fit []contender, base *group.Standing) []string {
	names := []string{base.Bench.Metrics.Primary}
	for _, metric := range slices.Sorted(maps.Keys(base.Series)) {
		twice := slices.ContainsFunc(names, func(name string) bool {
			return base.Units[name] == base.Units[metric] && maps.Equal(base.Series[name], base.Series[metric])
		})
		switch {
		case slices.Contains(c.Metrics, metric):
			twice = false
		case len(c.Metrics) > 0:
			continue
		}
		if !twice && metric != names[0] {
			names = append(names, metric)
		}
	}
	for _, metric := range c.Metrics {
		printed := slices.ContainsFunc(fit, func(s contender) bool { return len(s.Series[metric]) > 0 })
		if printed && !slices.Contains(names, metric) {
			names = append(names, metric)
		}
	}
	return names
}

func ruleOf(c *hclspec.Compare, g *group.Group, base *group.Standing, metric, better string) stats.Rule {
	tie := c.Tie
	for _, def := range base.Bench.Metrics.Custom {
		if def.Name == metric && def.Tie > 0 {
			tie = def.Tie
		}
	}
	return stats.Rule{Better: better, Tie: cmp.Or(tie, stats.DefaultTie(metric)), Confidence: c.Confidence,
		Looks: LooksOf(g.Design), Pairing: g.Design.Pairing}
}

// LooksOf returns the numbers of blocks at which the contrasts of a design are judged.
func LooksOf(d hclspec.Design) []int {
	if len(d.Looks) > 0 {
		return d.Looks
	}
	return stats.Looks(d.Samples, d.Max)
}

// pairs returns the samples of both sides, for each block in which both have one.
func pairs(candidate, against map[int]float64, s, base *group.Standing) []stats.Pair {
	var list []stats.Pair
	for _, block := range slices.Sorted(maps.Keys(candidate)) {
		if other, ok := against[block]; ok {
			p := stats.Pair{Block: block, Candidate: candidate[block], Against: other}
			if s.First[block] != base.First[block] {
				p.First = map[bool]int{true: 1, false: -1}[s.First[block]]
			}
			if one, other := s.Canary[block], base.Canary[block]; one > 0 && other > 0 {
				p.Canary = one / other
			}
			list = append(list, p)
		}
	}
	return list
}

// unpaired returns all samples of both sides, each in a pair of its own.
func unpaired(candidate, against map[int]float64) []stats.Pair {
	var list []stats.Pair
	for _, value := range candidate {
		list = append(list, stats.Pair{Candidate: value, Against: math.NaN()})
	}
	for _, value := range against {
		list = append(list, stats.Pair{Candidate: math.NaN(), Against: value})
	}
	slices.SortFunc(list, func(a, b stats.Pair) int {
		return cmp.Or(cmp.Compare(a.Candidate, b.Candidate), cmp.Compare(a.Against, b.Against))
	})
	return list
}
