package doubt

import (
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/stats"
)

// A candidate that hides a loss in noise gets a caveat, which tells the direction of the figures.
func TestNoiseIsAWayOutOfALoss(t *testing.T) {
	calm := []float64{100, 101, 99, 100, 101, 100}
	for name, tt := range map[string]struct {
		own, base []float64
		want      string
	}{
		"noise of its own": {[]float64{70, 105, 88, 60, 103, 75}, calm,
			"request_throughput is worse: 83.5 req/s on average"},
		"noise of the machine": {[]float64{70, 105, 88, 60, 103, 75}, []float64{71, 103, 89, 61, 106, 77}, ""},
		"as calm":              {[]float64{98, 99, 97, 100, 97, 99}, calm, ""},
		"noise of the other":   {calm, []float64{70, 105, 88, 60, 103, 75}, ""},
	} {
		own := side("c/own", map[string][]float64{"request_throughput": tt.own})
		base := side("c/base", map[string][]float64{"request_throughput": tt.base})
		own.Units["request_throughput"], base.Units["request_throughput"] = "req/s", "req/s"
		row := stats.Comparison{Metric: "request_throughput"}
		row.Outcome = stats.Inconclusive
		text := ""
		if all := Spread(row, own, base); len(all) > 0 {
			text = all[0].Text
		}
		if (text == "") != (tt.want == "") || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %q, want %q", name, text, tt.want)
		}
	}
}
