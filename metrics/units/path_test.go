package units

import (
	"testing"
)

func TestUnitsHaveOneSpelling(t *testing.T) {
	for unit, want := range map[string]string{
		"requests per second": "req/s", "requests/sec": "req/s", "tokens/s": "tok/s", "msec": "ms", "seconds": "s",
		"µs":           "us",
		"Items/second": "Items/s", "ns/op": "ns/op", "B/op": "B/op", "rps": "req/s", "widgets": "widgets",
		" KB/sec ": "KB/s", "": "",
	} {
		if got := Canonical(unit); got != want || Canonical(got) != got {
			t.Errorf("%q: %q, want %q", unit, got, want)
		}
	}
	for path, want := range map[string]string{
		"a.latency_ms": "ms", "ms": "", "a.p50": "", "requests_per_second": "req/s", "ALL.Ops/sec": "ops/s",
		"x.qps": "req/s", "used_bytes": "B", "heads_per_layer": "",
		// A rate is not the time that it ends in.
		"output_token_throughput_tok_s": "tok/s", "request_throughput_req_s": "req/s", "tok_s": "tok/s",
		"GB_s": "GB/s", "read_gb_s": "GB/s", "GiB_per_sec": "GiB/s", "output_tokens_s": "tok/s",
		"tok_per_ms": "tok/ms", "requests_per_minute": "req/min", "a.tokens/min": "tok/min",
		"Output throughput (tokens/s)": "tok/s", "Mean TTFT (ms)": "ms", "latency [µs]": "us", "Latency (p99)": "",
		"throughput_token_ms": "tok/ms", "Read KB/sec": "KB/s", "bandwidth_MB_s": "MB/s",
		// A time stays one beside an amount.
		"time_per_output_token_ms": "ms", "time_to_first_token_s": "s", "request_latency_s": "s", "per_token_ms": "ms",
		"first_token_s": "s", "latency_4KB_us": "us", "load_s": "s", "bandwidth_test_ms": "ms",
		"elapsed_minutes": "min", "latency_min_s": "s", "duration_h": "h",
		// Either.
		"throughput_s": "", "tok_ms": "", "token_s": "", "load_requests_s": "", "128_tok_s": "", "tokens_min": "",
		"latency_min": "", "image_h": "", "per_s": "", "_s": "", "a./s": "", "%_s": "s",
	} {
		if got := OfPath(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
