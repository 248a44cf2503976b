package findings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/internal/words"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/metrics/units"
	"github.com/benchgraph/benchgraph/stats"
)

// gap returns the reason why the samples of two sides on one metric may not be compared; empty: they may.
func gap(metric string, s, base *group.Standing) string {
	for _, side := range []*group.Standing{s, base} {
		if text := side.Clash[metric]; text != "" {
			return fmt.Sprintf("%s of %s has several units: %s", metric, side.Title(), text)
		}
	}
	if absent := s.Without(metric); len(absent) > 0 {
		return fmt.Sprintf("%s is missing in the output of %s in %s", metric, s.Title(), words.Blocks(absent))
	}
	if absent := base.Without(metric); len(absent) > 0 {
		return fmt.Sprintf("%s is missing in the output of %s in %s", metric, base.Title(), words.Blocks(absent))
	}
	if _, ok := units.Convert(1, s.Units[metric], base.Units[metric]); !ok {
		return fmt.Sprintf("%s has %s for %s and %s for %s", metric, words.Unit(s.Units[metric]), s.Title(),
			words.Unit(base.Units[metric]), base.Title())
	}
	return partsDiffer(metric, s, base)
}

// partsDiffer describes the first block in which a mean has different parts on the two sides; empty: none.
func partsDiffer(metric string, s, base *group.Standing) string {
	for _, block := range slices.Sorted(maps.Keys(base.Series[metric])) {
		if _, both := s.Series[metric][block]; !both { // an independent design shares no blocks
			continue
		}
		own, theirs := over(s, metric, block), over(base, metric, block)
		lost, more := minus(theirs, own), minus(own, theirs)
		if len(lost) > 0 && len(more) > 0 || len(own) == 0 && len(theirs) > 0 || len(theirs) == 0 && len(own) > 0 {
			return fmt.Sprintf("%s stands for different results in block %d: %s of %s, and %s of %s", metric, block,
				cmp.Or(words.Some(lost), metric), base.Title(), cmp.Or(words.Some(more), metric), s.Title())
		}
		absent, from := lost, s
		if len(more) > 0 {
			absent, from = more, base
		}
		if len(absent) > 0 {
			return fmt.Sprintf("%s is a mean over %d metrics of %s and over %d of %s: %s is missing in the output "+
				"of %s in block %d",
				metric, len(theirs), base.Title(), len(own), s.Title(), words.Some(absent), from.Title(), block)
		}
	}
	return ""
}

// over returns the metrics whose mean a metric is, in one block.
func over(s *group.Standing, metric string, block int) []string {
	for i := range s.Evidence {
		if s.Evidence[i].Block == block {
			return s.Evidence[i].Over[metric]
		}
	}
	return nil
}

// incomplete compares the amounts of work of both sides: requests and tokens. It returns the reason to refuse the
// comparison, or caveats about differences that the user allows or that a mean hides.
func (c *Case) incomplete(s, base *group.Standing) (refusal string, labels []stats.Caveat) {
	for _, names := range sample.Counts() {
		own, theirs := s.Counted(names), base.Counted(names)
		if len(own) == 0 && len(theirs) == 0 {
			continue
		}
		metric := names[0]
		diff := ""
		switch {
		case len(own) == 0:
			diff = fmt.Sprintf("%s: in the output of %s and not in that of %s", metric, base.Title(), s.Title())
		case len(theirs) == 0:
			diff = fmt.Sprintf("%s: in the output of %s and not in that of %s", metric, s.Title(), base.Title())
		case len(s.Lacking(own)) > 0:
			diff = fmt.Sprintf("%s: missing in the output of %s in %s", metric, s.Title(), words.Blocks(s.Lacking(own)))
		case len(base.Lacking(theirs)) > 0:
			diff = fmt.Sprintf("%s: missing in the output of %s in %s", metric, base.Title(),
				words.Blocks(base.Lacking(theirs)))
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

// requestsDiffer describes the first block in which the sides sent different numbers of requests; empty: none. If only
// one side has a block, the mean of the other side stands in for the missing number.
func requestsDiffer(metric string, own, theirs map[int]float64) string {
	for _, block := range slices.Sorted(maps.Keys(own)) {
		other, ok := theirs[block]
		if !ok {
			other = group.Mean(theirs)
		}
		if own[block] != other {
			return fmt.Sprintf("%s: %.6g against %.6g in block %d", metric, own[block], other, block)
		}
	}
	return ""
}

// minus returns the elements of a that are not in b.
func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(x string) bool { return slices.Contains(b, x) })
}
