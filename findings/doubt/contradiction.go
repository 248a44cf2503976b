// Package doubt finds reasons in the outputs of two sides to doubt a verdict on them. A reason becomes a caveat of the
// row, or there is no verdict.
package doubt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/internal/words"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/metrics/units"
	"github.com/benchgraph/benchgraph/stats"
)

const (
	mostRounding = 0.01 // relative disorder of percentiles that rounding may cause
	// relative difference of a rate from amount / duration, beyond the difference on the other side
	mostApart = 0.05
	mostTimes = 2 // factor between the sides above which there is no verdict
)

// Contradictions doubts numbers that contradict others in the same output: percentiles out of order, and rates that are
// not the amount divided by the duration.
func Contradictions(metric string, s, base *group.Standing) []stats.Caveat {
	var list []stats.Caveat
	add := func(side *group.Standing, blocks []int, text string) {
		if len(blocks) > 0 {
			list = append(list, stats.Caveat{Kind: stats.CaveatContradiction, Text: contradicts(side, blocks, text)})
		}
	}
	for _, side := range []*group.Standing{s, base} {
		blocks, text := disordered(side, metric)
		add(side, blocks, text)
	}
	for _, sides := range [][2]*group.Standing{{s, base}, {base, s}} {
		blocks, text := unlikeItsAmount(sides[0], metric, sides[1])
		add(sides[0], blocks, text)
	}
	return list
}

// contradicts writes that the output of a member contradicts itself in some blocks.
func contradicts(s *group.Standing, blocks []int, text string) string {
	return fmt.Sprintf("the output of %s contradicts itself in %s: %s", s.Title(), words.Blocks(blocks), text)
}

// disordered returns the blocks in which a percentile of a metric's family is above a higher one, and describes the
// first.
func disordered(s *group.Standing, metric string) (blocks []int, text string) {
	end := strings.LastIndex(metric, "_")
	if end < 0 {
		return nil, ""
	}
	family := metric[:end]
	type point struct {
		name string
		rank float64
	}
	var points []point
	for name := range s.Series {
		if end, ok := strings.CutPrefix(name, family+"_"); ok {
			if rank, ok := sample.Rank(end); ok && s.Units[name] == s.Units[metric] {
				points = append(points, point{name, rank})
			}
		}
	}
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.name, b.name))
	})
	for i := 1; i < len(points); i++ {
		low, high := points[i-1], points[i]
		for block, v := range s.Series[low.name] {
			if above, ok := s.Series[high.name][block]; ok && low.rank < high.rank && v > above*(1+mostRounding) &&
				!slices.Contains(blocks, block) {
				blocks = append(blocks, block)
			}
		}
		if len(blocks) > 0 {
			slices.Sort(blocks)
			b := blocks[0]
			return blocks, fmt.Sprintf("%s is %.6g and %s is %.6g in block %d", low.name, s.Series[low.name][b],
				high.name, s.Series[high.name][b], b)
		}
	}
	return nil, ""
}

// unlikeItsAmount returns the blocks in which a rate is neither the amount divided by the duration nor as far from it
// as on the other side: a tool may count in ways of its own, and then does so on both sides.
func unlikeItsAmount(s *group.Standing, metric string, other *group.Standing) (blocks []int, text string) {
	own, theirs := overAmount(s, metric), overAmount(other, metric)
	if len(own) == 0 || len(theirs) == 0 {
		return nil, ""
	}
	usual := group.Mean(theirs)
	for block, ratio := range own {
		if group.Apart(ratio, 1) > mostApart && group.Apart(ratio, usual) > mostApart {
			blocks = append(blocks, block)
		}
	}
	if len(blocks) == 0 {
		return nil, ""
	}
	slices.Sort(blocks)
	b := blocks[0]
	return blocks, fmt.Sprintf("%s is %.6g, and the amount divided by the duration is %.6g in block %d", metric,
		s.Series[metric][b], s.Series[metric][b]/own[b], b)
}

// Unbelievable returns the reason why a metric cannot carry a verdict; empty: it can. Either the rate of one side is
// far from the amount divided by the duration, and that of the other side is closer, or one side has far less text for
// each token.
func Unbelievable(metric string, s, base *group.Standing) string {
	own, theirs := textOfToken(s), textOfToken(base)
	a, b := group.Mean(own), group.Mean(theirs)
	if len(own) > 0 && len(theirs) > 0 && max(a, b) > mostTimes*min(a, b) {
		return lessText(s, base, a, b) + ": the tokens that were counted are not the same work"
	}
	for _, sides := range [][2]*group.Standing{{s, base}, {base, s}} {
		own, theirs := group.Mean(overAmount(sides[0], metric)), group.Mean(overAmount(sides[1], metric))
		if own > 0 && theirs > 0 && max(own/theirs, theirs/own) > mostTimes &&
			group.Apart(own, 1) > group.Apart(theirs, 1) {
			blocks, text := unlikeItsAmount(sides[0], metric, sides[1])
			return contradicts(sides[0], blocks, text)
		}
	}
	return ""
}

// overAmount returns the ratio of a rate to the amount divided by the duration, by block. Blocks without all three
// numbers are missing.
func overAmount(s *group.Standing, metric string) map[int]float64 {
	var amounts []string
	switch metric {
	case "request_throughput":
		amounts = []string{"successful_requests"}
	case "output_token_throughput":
		amounts = []string{"total_output_tokens"}
	case "input_token_throughput":
		amounts = []string{"total_input_tokens"}
	case "total_token_throughput":
		amounts = []string{"total_input_tokens", "total_output_tokens"}
	default:
		return nil
	}
	if !strings.HasSuffix(s.Units[metric], "/s") {
		return nil
	}
	ratios := map[int]float64{}
	for block, rate := range s.Series[metric] {
		duration, known := s.Series["benchmark_duration"][block]
		if unit := s.Units["benchmark_duration"]; known && unit != "" {
			duration, known = units.Convert(duration, unit, "s")
		} else if !known {
			duration, known = s.Counts["benchmark_duration"][block]
		}
		sum := 0.0
		for _, name := range amounts {
			amount, ok := s.Counted([]string{name})[block]
			sum += amount
			known = known && ok
		}
		if known && duration > 0 && sum > 0 {
			ratios[block] = rate * duration / sum
		}
	}
	return ratios
}
