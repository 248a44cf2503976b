package doubt

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/internal/words"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/metrics/units"
	"github.com/benchgraph/benchgraph/stats"
)

// FailedRequests returns a caveat with the number of failed requests. It is the same on both sides, so the comparison
// is allowed.
func FailedRequests(s, base *group.Standing) []stats.Caveat {
	n := group.Mean(s.Counted(sample.Counts()[1]))
	if n == 0 {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatRequests,
		Text: fmt.Sprintf("%.6g requests failed in each run of %s and of %s", n, s.Title(), base.Title())}}
}

// Warnings returns the parsers' warnings about one metric. With the primary metric come those about no metric in
// particular, or about a metric without numbers.
func Warnings(metric string, primary bool, sides ...*group.Standing) []stats.Caveat {
	var list []stats.Caveat
	for _, s := range sides {
		type about struct{ kind, metric string }
		blocks := map[about][]int{}
		texts := map[about]string{}
		var order []about
		for _, e := range s.Evidence {
			for _, w := range e.Warnings {
				if w.Metric != metric && !(primary && len(s.Series[w.Metric]) == 0) {
					continue
				}
				of := about{w.Kind, w.Metric}
				if len(blocks[of]) == 0 {
					order, texts[of] = append(order, of), w.Text
				}
				if n := len(blocks[of]); n == 0 || blocks[of][n-1] != e.Block {
					blocks[of] = append(blocks[of], e.Block)
				}
			}
		}
		for i, of := range order {
			if i == words.Shown {
				list = append(list, stats.Caveat{Kind: stats.CaveatWarning,
					Text: fmt.Sprintf("%s: %d further warnings", s.Title(), len(order)-i)})
				break
			}
			list = append(list, stats.Caveat{Kind: stats.CaveatWarning,
				Text: fmt.Sprintf("%s, %s: %s", s.Title(), words.Blocks(blocks[of]), texts[of])})
		}
	}
	return list
}

// Constant doubts a metric that has one value in all blocks of all sides, or in all blocks of one side of a row (own).
func Constant(metric string, sides, own []*group.Standing, unit string) []stats.Caveat {
	values := map[float64]bool{}
	blocks := 0
	for _, s := range sides {
		for _, v := range s.InUnit(metric, unit) {
			values[v] = true
		}
		blocks = max(blocks, len(s.Series[metric]))
	}
	if blocks < 2 {
		return nil
	}
	if len(values) != 1 {
		return stuck(metric, own, unit)
	}
	for v := range values {
		return []stats.Caveat{{Kind: stats.CaveatConstant, Text: fmt.Sprintf(
			"%s is %.6g %s in all %d blocks of all variants: it may be a count or a setting and no measurement", metric,
			v, unit, blocks)}}
	}
	return nil
}

// stuck doubts a time or a rate that has one value in all blocks of one side: no clock repeats itself to the last
// digit.
func stuck(metric string, sides []*group.Standing, unit string) []stats.Caveat {
	amount, per, _ := strings.Cut(unit, "/")
	if _, time := units.Convert(1, amount, "s"); per != "s" && (per != "" || !time) {
		return nil
	}
	var list []stats.Caveat
	for _, s := range sides {
		values := slices.Compact(slices.Sorted(maps.Values(s.Series[metric])))
		if len(values) == 1 && values[0] != 0 && len(s.Series[metric]) >= stats.FewestBlocks {
			list = append(list, stats.Caveat{Kind: stats.CaveatConstant, Text: fmt.Sprintf(
				"%s is %.6g %s in all %d blocks of %s: it may be a setting, or too few digits are printed", metric,
				values[0], s.Units[metric], len(s.Series[metric]), s.Title())})
		}
	}
	return list
}

// tailRequests is the number of requests below which fewer than ten requests are above the 99th percentile.
const tailRequests = 1000

// FewRequests doubts a 99th percentile of few requests.
func FewRequests(metric string, s, base *group.Standing) []stats.Caveat {
	if !strings.Contains(strings.ToLower(metric), "p99") {
		return nil
	}
	for _, side := range []*group.Standing{s, base} {
		of := side.Counted(sample.Counts()[0])
		if n := group.Mean(of); len(of) > 0 && n < tailRequests {
			return []stats.Caveat{{Kind: stats.CaveatRequests,
				Text: fmt.Sprintf("%s is of %.6g requests in each run of %s: a 99th percentile needs %d", metric, n,
					side.Title(), tailRequests)}}
		}
	}
	return nil
}

// OneSided names the metrics that only the candidate printed.
func OneSided(s, base *group.Standing) []stats.Caveat {
	var alone []string
	for _, metric := range slices.Sorted(maps.Keys(s.Series)) {
		if len(base.Series[metric]) == 0 {
			alone = append(alone, metric)
		}
	}
	if len(alone) == 0 {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatMissing,
		Text: fmt.Sprintf("%s in the output of %s and not in that of %s: %s",
			words.Count(len(alone), "metric is", "metrics are"), s.Title(),
			base.Title(), words.Some(alone))}}
}

// Complaints lists the lines of errors and warnings that only the candidate's outputs have.
func Complaints(s, base *group.Standing) []stats.Caveat {
	theirs := map[string]bool{}
	for _, e := range base.Evidence {
		for _, line := range e.Complaints {
			theirs[line] = true
		}
	}
	var alone []string
	for _, e := range s.Evidence {
		for _, line := range e.Complaints {
			if !theirs[line] && !slices.Contains(alone, strconv.Quote(line)) {
				alone = append(alone, strconv.Quote(line))
			}
		}
	}
	if len(alone) == 0 {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatWarning, Text: fmt.Sprintf("%s complains, and %s does not: %s", s.Title(),
		base.Title(), words.Some(alone))}}
}
