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
	} {
		if got := OfPath(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
