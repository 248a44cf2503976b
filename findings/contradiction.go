package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/metrics/units"
	"github.com/benchgraph/benchgraph/stats"
)

const (
	mostRounding = 0.01 // by which percentiles may be out of order, since outputs round them
	// by which a rate may differ from amount and duration, beyond the difference that the other side has
	mostApart = 0.05
	mostTimes = 2 // how far apart the sides may be in that before no verdict can rest on the rate
)

// contradictions doubts numbers that contradict others in the same output: percentiles that are out of order, and rates
// that are not the amount by the duration.
func contradictions(metric string, s, base *standing) []stats.Caveat {
	var list []stats.Caveat
	add := func(side *standing, blocks []int, text string) {
		if len(blocks) > 0 {
			list = append(list, stats.Caveat{Kind: stats.CaveatContradiction, Text: side.contradicts(blocks, text)})
		}
	}
	for _, side := range []*standing{s, base} {
		blocks, text := side.disordered(metric)
		add(side, blocks, text)
	}
	for _, sides := range [][2]*standing{{s, base}, {base, s}} {
		blocks, text := sides[0].unlikeItsAmount(metric, sides[1])
		add(sides[0], blocks, text)
	}
	return list
}

// contradicts says that the member's output contradicts itself in blocks, and how.
func (s *standing) contradicts(blocks []int, text string) string {
	return fmt.Sprintf("the output of %s contradicts itself in %s: %s", s.name(), blocksText(blocks), text)
}

// disordered are the blocks in which a percentile of the family of a metric is above a higher one.
func (s *standing) disordered(metric string) (blocks []int, text string) {
	family, _, found := cutLast(metric, "_")
	if !found {
		return nil, ""
	}
	type point struct {
		name string
		rank float64
	}
	var points []point
	for name := range s.series {
		if end, ok := strings.CutPrefix(name, family+"_"); ok {
			if rank, ok := sample.Rank(end); ok && s.units[name] == s.units[metric] {
				points = append(points, point{name, rank})
			}
		}
	}
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.name, b.name))
	})
	for i := 1; i < len(points); i++ {
		low, high := points[i-1], points[i]
		for block, v := range s.series[low.name] {
			if above, ok := s.series[high.name][block]; ok && low.rank < high.rank && v > above*(1+mostRounding) &&
				!slices.Contains(blocks, block) {
				blocks = append(blocks, block)
			}
		}
		if len(blocks) > 0 {
			slices.Sort(blocks)
			b := blocks[0]
			return blocks, fmt.Sprintf("%s is %.6g and %s is %.6g in block %d", low.name, s.series[low.name][b],
				high.name, s.series[high.name][b], b)
		}
	}
	return nil, ""
}

// unlikeItsAmount are the blocks in which a rate is not the amount by the duration, as it is on the other side: tools
// may count both in ways of their own, and then do so on both sides.
func (s *standing) unlikeItsAmount(metric string, other *standing) (blocks []int, text string) {
	own, theirs := s.overAmount(metric), other.overAmount(metric)
	if len(own) == 0 || len(theirs) == 0 {
		return nil, ""
	}
	usual := mean(theirs)
	for block, ratio := range own {
		if apart(ratio, 1) > mostApart && apart(ratio, usual) > mostApart {
			blocks = append(blocks, block)
		}
	}
	if len(blocks) == 0 {
		return nil, ""
	}
	slices.Sort(blocks)
	b := blocks[0]
	return blocks, fmt.Sprintf("%s is %.6g, and the amount by the duration is %.6g in block %d", metric,
		s.series[metric][b], s.series[metric][b]/own[b], b)
}

// unbelievable says why a rate cannot carry a verdict: one side's is far from the amount by the duration, and the other
// side's is not as far; empty: it can.
func unbelievable(metric string, s, base *standing) string {
	for _, sides := range [][2]*standing{{s, base}, {base, s}} {
		own, theirs := mean(sides[0].overAmount(metric)), mean(sides[1].overAmount(metric))
		if own > 0 && theirs > 0 && max(own/theirs, theirs/own) > mostTimes && apart(own, 1) > apart(theirs, 1) {
			blocks, text := sides[0].unlikeItsAmount(metric, sides[1])
			return sides[0].contradicts(blocks, text)
		}
	}
	return ""
}

// overAmount are the ratios of a rate to the amount by the duration, by block; nil: the outputs do not have all three.
func (s *standing) overAmount(metric string) map[int]float64 {
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
	if !strings.HasSuffix(s.units[metric], "/s") {
		return nil
	}
	ratios := map[int]float64{}
	for block, rate := range s.series[metric] {
		duration, known := s.series["benchmark_duration"][block]
		if unit := s.units["benchmark_duration"]; known && unit != "" {
			duration, known = units.Convert(duration, unit, "s")
		} else if !known {
			duration, known = s.counts["benchmark_duration"][block]
		}
		sum := 0.0
		for _, name := range amounts {
			amount, ok := s.counted([]string{name})[block]
			sum += amount
			known = known && ok
		}
		if known && duration > 0 && sum > 0 {
			ratios[block] = rate * duration / sum
		}
	}
	return ratios
}

// complaints are the lines of errors and warnings that only the candidate's outputs have.
func complaints(s, base *standing) []stats.Caveat {
	theirs := map[string]bool{}
	for _, e := range base.evidence {
		for _, line := range e.Complaints {
			theirs[line] = true
		}
	}
	var alone []string
	for _, e := range s.evidence {
		for _, line := range e.Complaints {
			if !theirs[line] && !slices.Contains(alone, strconv.Quote(line)) {
				alone = append(alone, strconv.Quote(line))
			}
		}
	}
	if len(alone) == 0 {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatWarning, Text: fmt.Sprintf("%s complains, and %s does not: %s", s.name(),
		base.name(), some(alone))}}
}
