package judge

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/benchgraph/benchgraph/stats"
)

// methodology is how the member was measured: on the hardware that its samples say, and else as declared; of what stood at
// another time, as its blocks say.
func (s *standing) methodology() stats.Methodology {
	fields := slices.Clip(s.Methodology.Fields)
	if s.run != "" {
		fields = nil
		for _, name := range slices.Sorted(maps.Keys(s.procedure)) {
			fields = append(fields, stats.Field{Name: name, Value: s.procedure.of(name)})
		}
	}
	hardware := values{}
	for _, r := range s.rows {
		hardware.add("hardware", r.Hardware)
	}
	return stats.Methodology{Fields: append(fields, stats.Field{Name: "hardware", Value: hardware.of("hardware")})}
}

// comparable decides whether a candidate's numbers may be held against the other's, and labels a row with what was allowed
// to differ.
func (c *Case) comparable(row stats.Comparison, s, base *standing) (stats.Comparison, bool) {
	own := s.methodology()
	diff, labels := stats.Compatible(own, base.methodology(), c.Allow)
	row.Methodology = own.Digest()
	row.Caveats = append(row.Caveats, labels...)
	if err := stats.Refuse(s.name(), base.name(), diff); err != nil {
		row.Outcome, row.Reason = stats.NotComparable, err.Error()
		return row, true
	}
	why, more := c.incomplete(s, base)
	row.Caveats = append(row.Caveats, more...)
	if why == "" {
		why = gap(row.Metric, s, base)
	}
	if why != "" {
		row.Outcome, row.Reason = stats.NotComparable, why
	}
	return row, why != ""
}

// usualTolerance is the relative difference of total tokens up to which two servers are taken to have said the same.
const usualTolerance = 0.005

// amountsDiffer holds the total tokens of both sides, which have their own names for them, against each other: a server that
// says less is not faster.
func amountsDiffer(metric, own string, s *standing, theirs string, base *standing) string {
	tolerance := cmp.Or(s.Bench.Metrics.TokenTolerance, usualTolerance)
	x, y := mean(s.series[own]), mean(base.series[theirs])
	if apart(x, y) <= tolerance {
		return ""
	}
	return fmt.Sprintf("%s: %.6g tok against %.6g tok, more than %.3g %% apart (token_tolerance in metrics)", metric, x, y, 100*tolerance)
}

// amountsVary doubts total tokens whose means may be compared: a wide tolerance lets them differ, they differ inside blocks, or
// there are none.
func amountsVary(metric, own string, s *standing, theirs string, base *standing) []stats.Caveat {
	const inBlock = 0.02
	doubt := func(format string, args ...any) []stats.Caveat {
		return []stats.Caveat{{Kind: stats.CaveatRequests, Text: metric + ": " + fmt.Sprintf(format, args...)}}
	}
	x, y := mean(s.series[own]), mean(base.series[theirs])
	switch {
	case x == 0 && y == 0 && metric == "total_output_tokens":
		return doubt("0 in each run of %s and of %s: nothing was generated", s.name(), base.name())
	case apart(x, y) > usualTolerance:
		return doubt("%.6g of %s against %.6g of %s, which token_tolerance lets pass", x, s.name(), y, base.name())
	}
	var blocks []int
	for _, block := range slices.Sorted(maps.Keys(s.series[own])) {
		if other, ok := base.series[theirs][block]; ok && apart(s.series[own][block], other) > inBlock {
			blocks = append(blocks, block)
		}
	}
	if len(blocks) == 0 {
		return nil
	}
	first := blocks[0]
	return doubt("more than %g %% apart in %s, although the means agree: %.6g of %s against %.6g of %s in block %d",
		100*inBlock, blocksText(blocks), s.series[own][first], s.name(), base.series[theirs][first], base.name(), first)
}

// apart is the relative difference of two amounts.
func apart(x, y float64) float64 {
	switch {
	case x == y:
		return 0
	case y == 0:
		return math.Inf(1)
	}
	return math.Abs(x-y) / math.Abs(y)
}

func mean(values map[int]float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	if len(values) == 0 {
		return 0
	}
	return sum / float64(len(values))
}
