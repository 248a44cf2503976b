package gobench

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/metricstest"
	"github.com/benchgraph/benchgraph/metrics/number"
	"pgregory.net/rapid"
)

// A sample is finite, is among the labels, and has the value of its printed digits.
func TestSamplesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Z][a-z]{0,5}(/[a-z]{1,3})?`)
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("Benchmark%s-8\t%d\t%v ns/op\n", name.Draw(t, "name"), rapid.IntRange(1, 9).Draw(t, "n"),
				rapid.Float64Range(0, 1e6).Draw(t, "v"))
		}), 1, 20).Draw(t, "rows")
		r, err := Parser{}.Parse(metrics.Output{Stdout: strings.NewReader(strings.Join(rows, ""))})
		if err != nil {
			t.Fatal(err)
		}
		low, high := math.Inf(1), math.Inf(-1)
		for _, s := range r.Samples {
			if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
				t.Fatalf("%+v", s)
			}
			if v, err := number.Parse(s.Printed); s.Printed != "" && (err != nil || v != s.Value) {
				t.Fatalf("%+v: %v %v", s, v, err)
			}
			if s.Metric != "ns/op" {
				low, high = min(low, s.Value), max(high, s.Value)
			} else if s.Value < low*(1-1e-9) || s.Value > high*(1+1e-9) {
				t.Fatalf("geometric mean %v outside %v..%v", s.Value, low, high)
			}
		}
	})
}

// Lines of one benchmark give a mean. If one of them cannot be read, the mean is in doubt.
func TestLinesOfGoBenchmarks(t *testing.T) {
	for second, want := range map[string]string{
		"30 ns/op": "", "0x1p3 ns/op": `"0x1p3" is not a number`, "inf ns/op": `"inf" is not finite`,
		"30,5 ns/op": `"30,5" is not a number`, "-3 ns/op": "a rate is not negative",
	} {
		r := metricstest.Parse(t, Parser{}, "BenchmarkX-8 100 30 ns/op\nBenchmarkX-8 100 "+second+"\n")
		if why := r.Doubts["X ns/op"]; (want == "") != (why == "") || !strings.Contains(why, want) {
			t.Errorf("%s: %q, want %q", second, why, want)
		}
	}
}
