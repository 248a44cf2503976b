package judge

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/sample"
	"github.com/benchgraph/benchgraph/stats"
)

// contender is a member that figures decide about.
type contender struct {
	*standing
	row stats.Comparison // how each of its rows begins
}

// verdicts judges the contenders together, metric by metric.
func (c *Case) verdicts(g *Group, fit []contender, base *standing) ([]stats.Comparison, int) {
	var rows []stats.Comparison
	more := 0
	for _, metric := range metricsOf(c.Compare, fit, base) {
		better, known := sample.Better(base.Bench.Metrics, metric, base.units[metric])
		primary := metric == base.Bench.Metrics.Primary
		if !known && !primary {
			continue
		}
		rule := ruleOf(c.Compare, g, base, metric, better)
		contrasts := make([][]stats.Pair, len(fit))
		for i, s := range fit {
			if rule.Pairing == stats.Runs {
				contrasts[i] = unpaired(s.series[metric], base.series[metric])
			} else {
				contrasts[i] = pairs(s.series[metric], base.series[metric])
			}
		}
		for i, v := range stats.JudgeTogether(contrasts, rule) {
			row := fit[i].row
			row.Metric, row.Primary, row.Unit = metric, primary, base.units[metric]
			rows = append(rows, v.Into(row))
			if primary {
				more = max(more, v.More)
			}
		}
	}
	return rows, more
}

// metricsOf are the metrics to judge: the primary first, then those that the compare names or, when it names none, all
// that every side has, each once: a mean over one benchmark is that benchmark's number under another name.
func metricsOf(c *hclspec.Compare, fit []contender, base *standing) []string {
	names := []string{base.Bench.Metrics.Primary}
	for _, metric := range slices.Sorted(maps.Keys(base.series)) {
		everywhere := !slices.ContainsFunc(fit, func(s contender) bool { return len(s.series[metric]) == 0 })
		twice := slices.ContainsFunc(names, func(name string) bool {
			return base.units[name] == base.units[metric] && maps.Equal(base.series[name], base.series[metric])
		})
		switch {
		case slices.Contains(c.Metrics, metric):
			twice = false
		case len(c.Metrics) > 0:
			continue
		}
		if everywhere && !twice && metric != names[0] {
			names = append(names, metric)
		}
	}
	return names
}

func ruleOf(c *hclspec.Compare, g *Group, base *standing, metric, better string) stats.Rule {
	tie := c.Tie
	for _, def := range base.Bench.Metrics.Custom {
		if def.Name == metric && def.Tie > 0 {
			tie = def.Tie
		}
	}
	return stats.Rule{Better: better, Tie: cmp.Or(tie, stats.DefaultTie(metric)), Confidence: c.Confidence,
		Looks: stats.Looks(g.Design.Samples, g.Design.Max), Pairing: g.Design.Pairing}
}

// pairs are the blocks in which both sides have a sample.
func pairs(candidate, against map[int]float64) []stats.Pair {
	var list []stats.Pair
	for _, block := range slices.Sorted(maps.Keys(candidate)) {
		if other, ok := against[block]; ok {
			list = append(list, stats.Pair{Block: block, Candidate: candidate[block], Against: other})
		}
	}
	return list
}

// unpaired are all samples of both sides. None has to do with the one beside it.
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
