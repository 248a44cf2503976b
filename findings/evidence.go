package findings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/metrics/units"
	"github.com/benchgraph/benchgraph/stats"
)

// shown is how many blocks, metrics or warnings a text names before it only counts them.
const shown = 3

// gap says why the samples of two sides on one metric may not be held against each other; empty: they may. For the
// values of the candidate it returns the factor's source and target unit, which differ where they must be converted.
func gap(metric string, s, base *standing) string {
	for _, side := range []*standing{s, base} {
		if text := side.clash[metric]; text != "" {
			return fmt.Sprintf("%s of %s has several units: %s", metric, side.name(), text)
		}
	}
	if absent := s.without(metric); len(absent) > 0 {
		return fmt.Sprintf("%s is missing in the output of %s in %s", metric, s.name(), blocksText(absent))
	}
	if absent := base.without(metric); len(absent) > 0 {
		return fmt.Sprintf("%s is missing in the output of %s in %s", metric, base.name(), blocksText(absent))
	}
	if _, ok := units.Convert(1, s.units[metric], base.units[metric]); !ok {
		return fmt.Sprintf("%s has the unit %s for %s and %s for %s", metric, unitText(s.units[metric]), s.name(),
			unitText(base.units[metric]), base.name())
	}
	return partsDiffer(metric, s, base)
}

// partsDiffer says which metrics a mean is over on one side alone.
func partsDiffer(metric string, s, base *standing) string {
	for _, block := range slices.Sorted(maps.Keys(base.series[metric])) {
		if _, both := s.series[metric][block]; !both { // an independent design shares no blocks
			continue
		}
		own, theirs := s.over(metric, block), base.over(metric, block)
		lost, more := minus(theirs, own), minus(own, theirs)
		if len(lost) > 0 && len(more) > 0 || len(own) == 0 && len(theirs) > 0 || len(theirs) == 0 && len(own) > 0 {
			return fmt.Sprintf("%s stands for different results in block %d: %s of %s, and %s of %s", metric, block,
				cmp.Or(some(lost), metric), base.name(), cmp.Or(some(more), metric), s.name())
		}
		absent, from := lost, s
		if len(more) > 0 {
			absent, from = more, base
		}
		if len(absent) > 0 {
			return fmt.Sprintf("%s is a mean over %d metrics of %s and over %d of %s: %s is missing in the output "+
				"of %s in block %d",
				metric, len(theirs), base.name(), len(own), s.name(), some(absent), from.name(), block)
		}
	}
	return ""
}

// over are the parts of a mean in one block.
func (s *standing) over(metric string, block int) []string {
	for i := range s.evidence {
		if s.evidence[i].Block == block {
			return s.evidence[i].Over[metric]
		}
	}
	return nil
}

// without are the blocks in which the member has a sample, and none of this metric.
func (s *standing) without(metric string) []int { return s.lacking(s.series[metric]) }

// lacking are the blocks in which the member has a sample, and which values do not have.
func (s *standing) lacking(values map[int]float64) []int {
	var blocks []int
	for _, block := range slices.Sorted(maps.Keys(s.series[s.Bench.Metrics.Primary])) {
		if _, ok := values[block]; !ok {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// inUnit are the member's values of a metric in another unit of the same dimension.
func (s *standing) inUnit(metric, unit string) map[int]float64 {
	values := s.series[metric]
	if s.units[metric] == unit {
		return values
	}
	converted := make(map[int]float64, len(values))
	for block, v := range values {
		converted[block], _ = units.Convert(v, s.units[metric], unit)
	}
	return converted
}

// incomplete holds against each other how much was asked for and done on both sides. It returns why the numbers may not
// be compared, or the labels of what the user lets differ.
func (c *Case) incomplete(s, base *standing) (refusal string, labels []stats.Caveat) {
	for _, names := range sample.Counts() {
		own, theirs := s.counted(names), base.counted(names)
		if len(own) == 0 && len(theirs) == 0 {
			continue
		}
		metric := names[0]
		diff := ""
		switch {
		case len(own) == 0:
			diff = fmt.Sprintf("%s: in the output of %s and not in that of %s", metric, base.name(), s.name())
		case len(theirs) == 0:
			diff = fmt.Sprintf("%s: in the output of %s and not in that of %s", metric, s.name(), base.name())
		case len(s.lacking(own)) > 0:
			diff = fmt.Sprintf("%s: missing in the output of %s in %s", metric, s.name(), blocksText(s.lacking(own)))
		case len(base.lacking(theirs)) > 0:
			diff = fmt.Sprintf("%s: missing in the output of %s in %s", metric, base.name(),
				blocksText(base.lacking(theirs)))
		case strings.HasPrefix(metric, "total_"):
			diff = amountsDiffer(metric, own, s, theirs)
		default:
			diff = requestsDiffer(metric, own, theirs)
		}
		switch {
		case diff == "":
			if strings.HasPrefix(metric, "total_") {
				labels = append(labels, amountsVary(metric, own, s, theirs, base)...)
			}
		case slices.Contains(c.Allow, metric):
			labels = append(labels, stats.Caveat{Kind: stats.CaveatMismatch, Text: "compared in spite of a different " +
				diff})
		default:
			return diff, labels
		}
	}
	return "", labels
}

// counted is a count of the member by block, under the first of some names that it has: a metric, the end of a path
// into a document, or else what the outputs state beside metrics.
func (s *standing) counted(names []string) map[int]float64 {
	for _, name := range names {
		if len(s.series[name]) > 0 {
			return s.series[name]
		}
	}
	for _, metric := range slices.Sorted(maps.Keys(s.series)) {
		if _, last, ok := cutLast(metric, "."); ok && slices.Contains(names, last) {
			return s.series[metric]
		}
	}
	counts := s.counts[names[0]]
	if primary := s.Bench.Metrics.Primary; !strings.Contains(s.units[primary], "/") &&
		maps.Equal(counts, s.series[primary]) {
		return nil // the count itself is what the file measures: how much is done in a fixed time
	}
	return counts
}

// cutLast cuts a text at the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// requestsDiffer lists the blocks in which the sides sent different numbers of requests. A block that only one side has
// is compared with the mean of the other side.
func requestsDiffer(metric string, own, theirs map[int]float64) string {
	for _, block := range slices.Sorted(maps.Keys(own)) {
		other, ok := theirs[block]
		if !ok {
			other = mean(theirs)
		}
		if own[block] != other {
			return fmt.Sprintf("%s: %.6g against %.6g in block %d", metric, own[block], other, block)
		}
	}
	return ""
}

// failedRequests says of how many requests failed on both sides alike, which the comparison lets through.
func failedRequests(s, base *standing) []stats.Caveat {
	n := mean(s.counted(sample.Counts()[1]))
	if n == 0 {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatRequests,
		Text: fmt.Sprintf("%.6g requests failed in each run of %s and of %s", n, s.name(), base.name())}}
}

// tailRequests is the number of requests below which a 99th percentile rests on fewer than ten of them.
const tailRequests = 1000

// fewRequests doubts a 99th percentile of few requests.
func fewRequests(metric string, s, base *standing) []stats.Caveat {
	if !strings.Contains(strings.ToLower(metric), "p99") {
		return nil
	}
	for _, side := range []*standing{s, base} {
		of := side.counted(sample.Counts()[0])
		if n := mean(of); len(of) > 0 && n < tailRequests {
			return []stats.Caveat{{Kind: stats.CaveatRequests,
				Text: fmt.Sprintf("%s is of %.6g requests in each run of %s: a 99th percentile needs %d", metric, n,
					side.name(), tailRequests)}}
		}
	}
	return nil
}

// warnings are the parser's on one metric, or on none in particular with the primary one.
func warnings(metric string, primary bool, sides ...*standing) []stats.Caveat {
	var list []stats.Caveat
	for _, s := range sides {
		type about struct{ kind, metric string }
		blocks := map[about][]int{}
		texts := map[about]string{}
		var order []about
		for _, e := range s.evidence {
			for _, w := range e.Warnings {
				if w.Metric != metric && !(primary && len(s.series[w.Metric]) == 0) {
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
			if i == shown {
				list = append(list, stats.Caveat{Kind: stats.CaveatWarning,
					Text: fmt.Sprintf("%s: %d further warnings", s.name(), len(order)-i)})
				break
			}
			list = append(list, stats.Caveat{Kind: stats.CaveatWarning,
				Text: fmt.Sprintf("%s, %s: %s", s.name(), blocksText(blocks[of]), texts[of])})
		}
	}
	return list
}

// constant doubts a metric that has one value in all blocks of all sides, or of one of the two that a row is about.
func constant(metric string, sides, own []*standing, unit string) []stats.Caveat {
	values := map[float64]bool{}
	blocks := 0
	for _, s := range sides {
		for _, v := range s.inUnit(metric, unit) {
			values[v] = true
		}
		blocks = max(blocks, len(s.series[metric]))
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
func stuck(metric string, sides []*standing, unit string) []stats.Caveat {
	amount, per, _ := strings.Cut(unit, "/")
	if _, time := units.Convert(1, amount, "s"); per != "s" && (per != "" || !time) {
		return nil
	}
	var list []stats.Caveat
	for _, s := range sides {
		values := slices.Compact(slices.Sorted(maps.Values(s.series[metric])))
		if len(values) == 1 && values[0] != 0 && len(s.series[metric]) >= stats.FewestBlocks {
			list = append(list, stats.Caveat{Kind: stats.CaveatConstant, Text: fmt.Sprintf(
				"%s is %.6g %s in all %d blocks of %s: it may be a setting, or too few digits are printed", metric,
				values[0], s.units[metric], len(s.series[metric]), s.name())})
		}
	}
	return list
}

// unitText is a unit for people.
func unitText(unit string) string {
	if unit == "" {
		return "nothing"
	}
	return fmt.Sprintf("%q", unit)
}

// blocksText names blocks: "block 3", "blocks 1, 2, 3 and 4 more".
func blocksText(blocks []int) string {
	if len(blocks) == 1 {
		return fmt.Sprintf("block %d", blocks[0])
	}
	names := make([]string, len(blocks))
	for i, b := range blocks {
		names[i] = fmt.Sprint(b)
	}
	return "blocks " + some(names)
}

// some names the first of a list, and counts the rest.
func some(names []string) string {
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

// minus are the elements of a that b lacks.
func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(x string) bool { return slices.Contains(b, x) })
}
