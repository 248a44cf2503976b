package doubt

import (
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/hclspec"
)

// side is a member with the values of metrics in blocks 1, 2, …
func side(candidate string, metrics map[string][]float64) *group.Standing {
	bench := &hclspec.Benchmark{}
	bench.Candidate = candidate
	s := &group.Standing{Member: &group.Member{Bench: bench},
		Series: map[string]map[int]float64{}, Units: map[string]string{}}
	for name, values := range metrics {
		s.Series[name] = map[int]float64{}
		for i, v := range values {
			s.Series[name][i+1] = v
		}
	}
	return s
}

func TestPercentilesOutOfOrderContradictThemselves(t *testing.T) {
	in := side("c/in", map[string][]float64{"ttft_p50": {1, 1}, "ttft_p99": {2, 2}})
	out := side("c/out", map[string][]float64{"ttft_p50": {1, 3}, "ttft_p99": {2, 2}})
	all := Contradictions("ttft_p99", in, out)
	if len(all) != 1 ||
		!strings.Contains(all[0].Text, "the output of c/out contradicts itself in block 2: ttft_p50 is 3") {
		t.Errorf("%+v", all)
	}
	if all := Contradictions("ttft_p99", in, in); all != nil {
		t.Errorf("in order: %+v", all)
	}
}

func TestAMetricOfOneSideIsTold(t *testing.T) {
	both, alone := map[string][]float64{"a": {1}}, map[string][]float64{"a": {1}, "b": {2}, "c": {3}}
	all := OneSided(side("c/own", alone), side("c/base", both))
	if len(all) != 1 || !strings.HasSuffix(all[0].Text, "not in that of c/base: b, c") {
		t.Errorf("%+v", all)
	}
	if all := OneSided(side("c/own", both), side("c/base", alone)); all != nil {
		t.Errorf("of the baseline alone: %+v", all)
	}
}
