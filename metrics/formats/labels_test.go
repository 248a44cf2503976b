package formats

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/collect"
)

// The value of a label is one whole number, or there is none and the reason is told. No version prints any of the
// forms that are refused.
func TestValueOfALabel(t *testing.T) {
	table := "============ Serving Benchmark Result ============\nSuccessful requests:                     100\n" +
		"Total generated tokens:                  10000\n%s\n" + strings.Repeat("=", 50) + "\n"
	const label = "Output token throughput (tok/s): "
	for line, want := range map[string]string{
		label + "1037.28": "1037.28", label + "1,037.28": "1037.28", label + "    0.00": "0",
		label + "1.037,28": `"1.037,28" is not a number`, label + "1 037.28": `"1 037.28" is not a number`,
		label + "1'037.28": `"1'037.28" is not a number`, label + "1\u202f037.28": "is not a number",
		label + "1.04k": `"1.04k" is not a number`, label + "0x40D": `"0x40D" is not a number`,
		label + "10INFO hello\n37.28": `"10INFO" is not a number`, label + "N/A": `"N/A" is not a number`,
		label + "1,037": `"1,037" is not a number`, label + "-1037.28": "a rate is not negative",
		label + "inf":                            `"inf" is not finite`,
		"Output token throughput (ktok/s): 1.04": `the unit in "output token throughput (ktok/s)" is not known`,
		label + "10.00\n" + label + "inf":        "two results in one output",
		label + "inf\n" + label + "10.00":        "two results in one output",
	} {
		r := parse(t, inference{"vllm"}, fmt.Sprintf(table, line))
		got := fmt.Sprint(r.Warnings)
		if r.Failure != nil {
			got += r.Failure.Evidence
		}
		if s, ok := metrics.Find(r.Samples, "output_token_throughput"); ok {
			got = fmt.Sprint(s.Value)
		}
		if !strings.Contains(got, want) || want[0] >= '0' && want[0] <= '9' && got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
	for text, want := range map[string]string{
		"Avg latency: 1,234 seconds\n":                      `"1,234" is not a number`,
		"SET: 90000.00 requests per second, p50=0,311 msec": `"0,311" is not a number`,
		"Throughput: 1.037,5 requests/s\n":                  `"1.037,5" is not a number`,
	} {
		format := "vllm"
		if strings.HasPrefix(text, "SET") {
			format = "redis"
		}
		p, err := Lookup(format)
		if err != nil {
			t.Fatal(err)
		}
		if r := parse(t, p, text); !strings.Contains(fmt.Sprint(r.Warnings), want) {
			t.Errorf("%q: %v, want %s", text, r.Warnings, want)
		}
	}
}

// Lines of one benchmark are a mean, which none of them that cannot be read may leave.
func TestLinesOfGoBenchmarks(t *testing.T) {
	for second, want := range map[string]string{
		"30 ns/op": "", "0x1p3 ns/op": `"0x1p3" is not a number`, "inf ns/op": `"inf" is not finite`,
		"30,5 ns/op": `"30,5" is not a number`, "-3 ns/op": "a rate is not negative",
	} {
		r := parse(t, gobench{}, "BenchmarkX-8 100 30 ns/op\nBenchmarkX-8 100 "+second+"\n")
		if why := r.Doubts["X ns/op"]; (want == "") != (why == "") || !strings.Contains(why, want) {
			t.Errorf("%s: %q, want %q", second, why, want)
		}
	}
}

// What stands before a number is a label; times, addresses and the like are not.
func TestLabels(t *testing.T) {
	p := custom1(t, Definition{Name: "missing", Match: "(nowhere)"})
	text := strings.Join([]string{
		"work done: 12.5 items/s", "Request throughput (req/s):              1.64", "INFO 05-04 16:48:47 started",
		"listening on 127.0.0.1:8000",
		"p50=0.1, p99 = 2 msec", "wall clock   12.5 s", "finished in 3 steps of many kinds", "{\"json_key\": 3}",
		"work done: 13",
		"time 12:00:01 rate: -5", strings.Repeat("x", 200) + ": 3", "http://host:80/", "value=x",
	}, "\n")
	want := []string{"work done", "Request throughput (req/s)", "p50", "p99", "wall clock", "json_key",
		"time 12:00:01 rate"}
	if d := cmp.Diff(want, parse(t, p, text).Labels); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, "label%d: 1\n", i)
	}
	if n := len(parse(t, p, many.String()).Labels); n != collect.MaxLabels {
		t.Error(n)
	}
}
