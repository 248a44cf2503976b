package metrics

import (
	"testing"
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
		{"speed", "tok/ms"}:                    "higher",
		{"decode", "tok/min"}:                  "higher",
		{"clock", "s/h"}:                       "lower",
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

func TestVanished(t *testing.T) {
	for _, c := range []struct {
		value    float64
		unit     string
		vanished bool
	}{
		{0, "us", true}, {0, "seconds", true}, {1e-320, "ms", true}, {0, "ns/op", true}, {1e-9, "s", false},
		{0, "tok/s", false}, {0, "B", false}, {0, "allocs/op", false}, {0, "", false}, {0, "ms/s", false},
	} {
		if got := (Sample{Metric: "m", Value: c.value, Unit: c.unit}).Vanished(); (got != "") != c.vanished {
			t.Errorf("%g %s: %q", c.value, c.unit, got)
		}
	}
}
