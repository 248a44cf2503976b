package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchgraph/benchgraph/metrics/units"
)

func TestBetter(t *testing.T) {
	for c, want := range map[[2]string]string{
		{"output_token_throughput", "tok/s"}:   "higher",
		{"request_throughput", "requests/sec"}: "higher",
		{"set_requests_per_second", "req/s"}:   "higher",
		{"items_per_second", ""}:               "higher",
		{"Decode MB/s", "MB/s"}:                "higher",
		{"gets_misses_per_second", "misses/s"}: "lower",
		{"ttft_p99", "ms"}:                     "lower",
		{"Key ns/op", "ns/op"}:                 "lower",
		{"Key B/op", "B/op"}:                   "lower",
		{"Key allocs/op", "allocs/op"}:         "lower",
		{"Key p99-ns", "p99-ns"}:               "lower",
		{"elapsed", ""}:                        "lower",
		{"peak_memory", "MiB"}:                 "lower",
		{"error_rate", "%"}:                    "lower",
		{"accuracy", "%"}:                      "higher",
		{"benchmark_duration", "seconds"}:      "lower",
		{"successful_requests", "req"}:         "unknown",
		{"total_output_tokens", "tok"}:         "unknown",
		{"items", ""}:                          "unknown",
		{"gemm", "GFLOPS"}:                     "higher",
		{"spec_decode_acceptance_rate", "%"}:   "higher",
		{"accept_length", ""}:                  "higher",
		{"cache_hit_rate", "%"}:                "higher",
		{"cold_startup_avg", "s"}:              "lower",
		{"BM_Add/8 real_time", "ns"}:           "lower",
		{"test_sort ops", "ops/s"}:             "higher",
		{"concurrency", "req"}:                 "unknown",
	} {
		got := "unknown"
		if higher, known := Better(c[0], c[1]); known && higher {
			got = "higher"
		} else if known {
			got = "lower"
		}
		if got != want {
			t.Errorf("%v: %s, want %s", c, got, want)
		}
	}
}

func TestUnitsHaveOneSpelling(t *testing.T) {
	for unit, want := range map[string]string{
		"requests per second": "req/s", "requests/sec": "req/s", "tokens/s": "tok/s", "msec": "ms", "seconds": "s",
		"µs":           "us",
		"Items/second": "Items/s", "ns/op": "ns/op", "B/op": "B/op", "rps": "req/s", "widgets": "widgets",
		" KB/sec ": "KB/s", "": "",
	} {
		if got := units.Canonical(unit); got != want || units.Canonical(got) != got {
			t.Errorf("%q: %q, want %q", unit, got, want)
		}
	}
	for path, want := range map[string]string{
		"a.latency_ms": "ms", "ms": "", "a.p50": "", "requests_per_second": "req/s", "ALL.Ops/sec": "ops/s",
		"x.qps": "req/s", "used_bytes": "B", "heads_per_layer": "",
	} {
		if got := pathUnit(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	samples := []Sample{{Metric: "Key ns/op"}, {Metric: "ns/op"}, {Metric: "set_requests_per_second"}, {Metric: "a-b"},
		{Metric: "a b"}}
	for want, found := range map[string]string{
		"Key ns/op": "Key ns/op", "ns/op": "ns/op", "BenchmarkKey ns/op": "Key ns/op", "Key: ns/op": "Key ns/op",
		"SET requests per second": "set_requests_per_second",
		"a_b":                     "", "a b": "a b", "": "", "op": "", "/": "",
	} {
		s, ok := Find(samples, want)
		if s.Metric != found || ok != (found != "") {
			t.Errorf("%q: %q %v, want %q", want, s.Metric, ok, found)
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
	if n := len(parse(t, p, many.String()).Labels); n != maxLabels {
		t.Error(n)
	}
}
