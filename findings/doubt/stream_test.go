package doubt

import (
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/stats"
)

// stream returns the output of a client for 24 answers of 24 tokens each; times in ms.
func stream(ttft, tpot []float64) map[string][]float64 {
	n := make([]float64, len(ttft))
	tokens := make([]float64, len(ttft))
	for i := range n {
		n[i], tokens[i] = 24, 24*24
	}
	return map[string][]float64{"ttft_mean": ttft, "tpot_mean": tpot, "itl_mean": tpot, "successful_requests": n,
		"total_output_tokens": tokens}
}

// A gain in a stream must show in the whole answers, too: else the server only sent the parts at other times.
func TestAGainOfTheStreamAlone(t *testing.T) {
	usual := stream([]float64{8.53, 7.87, 8.49, 8.33}, []float64{6.48, 6.48, 6.49, 6.51})
	for name, tt := range map[string]struct {
		metric     string
		ttft, tpot []float64
		want       string
	}{
		"an empty first part": {"ttft_mean", []float64{1.46, 1.56, 1.39, 1.6}, []float64{6.75, 6.86, 6.79, 6.79},
			"by ttft of the stream, an answer of c/own took 0.0068 s less than one of c/base, and a whole answer "},
		"all at the end": {"tpot_mean", []float64{153.6, 157.7, 162.1, 153.3}, []float64{0.02, 0.01, 0.01, 0.01},
			"by tpot of the stream"},
		"all at once, which is faster": {"output_token_throughput", []float64{81, 88, 82, 89}, []float64{0, 0, 0, 0},
			"the answers of c/own came at once, 0 % of their time after the first token"},
		"a faster prefill": {"ttft_mean", []float64{1.46, 1.56, 1.39, 1.6}, []float64{6.48, 6.49, 6.47, 6.5}, ""},
		"a faster decode":  {"tpot_mean", []float64{8.4, 8.2, 8.1, 8.5}, []float64{3.2, 3.3, 3.2, 3.2}, ""},
		"much noise":       {"ttft_mean", []float64{4.46, 4.56, 4.39, 4.6}, []float64{6.1, 6.9, 6.2, 6.7}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			own, base := side("c/own", stream(tt.ttft, tt.tpot)), side("c/base", usual)
			for _, s := range []map[string]string{own.Units, base.Units} {
				s["ttft_mean"], s["tpot_mean"], s["itl_mean"] = "ms", "ms", "ms"
			}
			row := stats.Comparison{Metric: tt.metric}
			row.Outcome = stats.Win
			all := Streams(row, own, base)
			text := ""
			if len(all) > 0 {
				text = all[0].Text
			}
			if (tt.want == "") != (text == "") || !strings.Contains(text, tt.want) {
				t.Errorf("%+v, want %q", all, tt.want)
			}
		})
	}
}

// The client must get text for all tokens that the server counts.
func TestTokensWithoutText(t *testing.T) {
	row := stats.Comparison{Metric: "output_token_throughput"}
	row.Outcome = stats.Win
	one := stream([]float64{8, 8}, []float64{6, 6})
	own, base := side("c/own", one), side("c/base", one)
	for _, tt := range []struct {
		own, base float64
		want      bool
		refused   bool // no verdict can rest on it
	}{{0, 2880, true, true}, {120, 2880, true, true}, {1500, 2880, true, false}, {2700, 2880, false, false},
		{2880, 0, false, true}, {0, 0, false, false}} {
		own.Counts = map[string]map[int]float64{sample.Characters: {1: tt.own, 2: tt.own}}
		base.Counts = map[string]map[int]float64{sample.Characters: {1: tt.base, 2: tt.base}}
		if all := Streams(row, own, base); (len(all) > 0) != tt.want {
			t.Errorf("%v: %+v", tt, all)
		}
		if why := Unbelievable("output_token_throughput", own, base); (why != "") != tt.refused {
			t.Errorf("%v: %q", tt, why)
		}
	}
	own.Counts = nil
	if all := Streams(row, own, base); all != nil {
		t.Errorf("no texts: %+v", all)
	}
}

// A server that answers some requests with nothing saves their work.
func TestAnswersWithoutText(t *testing.T) {
	row := stats.Comparison{Metric: "output_token_throughput"}
	row.Outcome = stats.Win
	one := stream([]float64{8, 8}, []float64{6, 6})
	own, base := side("c/own", one), side("c/base", one)
	for _, tt := range []struct {
		own, base float64 // of 24 requests
		want      bool
	}{{5, 0, true}, {5, 5, false}, {0, 5, false}, {0.2, 0, false}} {
		own.Counts = map[string]map[int]float64{sample.EmptyAnswers: {1: tt.own, 2: tt.own}}
		base.Counts = map[string]map[int]float64{sample.EmptyAnswers: {1: tt.base, 2: tt.base}}
		if all := Streams(row, own, base); (len(all) > 0) != tt.want {
			t.Errorf("%v: %+v", tt, all)
		}
	}
}
