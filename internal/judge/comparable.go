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
	why, label := c.tokensDiffer(s, base)
	if why != "" {
		row.Outcome, row.Reason = stats.NotComparable, why
	}
	row.Caveats = append(row.Caveats, label...)
	return row, why != ""
}

// tokensDiffer holds the total output tokens of both sides against each other: a server that says less is not faster. It
// is a reason to refuse, or a label where the user lets them differ.
func (c *Case) tokensDiffer(s, base *standing) (refusal string, label []string) {
	const metric, usual = "total_output_tokens", 0.005
	tolerance := cmp.Or(s.Bench.Metrics.TokenTolerance, usual)
	x, y := mean(s.series[metric]), mean(base.series[metric])
	if x == 0 || y == 0 || math.Abs(x-y)/y <= tolerance {
		return "", nil
	}
	diff := fmt.Sprintf("%s: %.6g tok against %.6g tok, more than %.3g %% apart", metric, x, y, 100*tolerance)
	if slices.Contains(c.Allow, metric) {
		return "", []string{"compared in spite of a different " + diff}
	}
	return diff + " (token_tolerance in metrics)", nil
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
