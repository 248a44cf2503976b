package units

import "testing"

func TestConvert(t *testing.T) {
	for _, tt := range []struct {
		value    float64
		from, to string
		want     float64
		ok       bool
	}{
		{980, "us", "ms", 0.98, true},
		{1.05, "ms", "s", 0.00105, true},
		{2, "min", "s", 120, true},
		{1, "milliseconds", "usec", 1000, true},
		{1500, "KB/s", "MB/s", 1.5, true},
		{1, "MiB", "B", 1048576, true},
		{60, "tok/min", "tok/s", 1, true},
		{2, "ktok/s", "tok/s", 2000, true},
		{1, "s/req", "ms/req", 1000, true},
		{8, "Mbit/s", "MB/s", 1, true},
		{3, "widgets", "widgets", 3, true},
		{3, "", "", 3, true},
		{3, "widgets", "gadgets", 0, false},
		{3, "ms", "", 0, false},
		{3, "req/s", "tok/s", 0, false},
		{3, "ms", "ms/op", 0, false},
		{3, "s", "B", 0, false},
	} {
		if got, ok := Convert(tt.value, tt.from, tt.to); got != tt.want || ok != tt.ok {
			t.Errorf("%v %s in %s is %v, %v; want %v, %v", tt.value, tt.from, tt.to, got, ok, tt.want, tt.ok)
		}
	}
}

func TestQuantity(t *testing.T) {
	for unit, want := range map[string]string{
		"us": "duration", "seconds": "duration", "tok/s": "rate", "ns/op": "rate", "widgets/s": "rate", "MiB": "size",
		"req": "count", "items": "count", "TFLOPS": "rate", "%": "", "": "", "dB": "", "p99-ns": "", "s/req": "",
	} {
		if got := Quantity(unit); got != want {
			t.Errorf("%q: %q, want %q", unit, got, want)
		}
	}
}
