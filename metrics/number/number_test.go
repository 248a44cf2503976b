package number

import (
	"strconv"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"1": "1", " 1.50 ": "1.5", "-1e-3": "-0.001", "1,234,567": "1234567", "1,234.5": "1234.5", "+30": "30",
		"1,234": "is not a number", "0,311": "is not a number", "0,311.5": "is not a number", "1,23": "is not a number",
		"1,23,456": "is not a number", "1.037,28": "is not a number", "1'037": "is not a number",
		"1 037": "is not a number", "1_000": "is not a number", "0x1": "is not a number", "0x1p3": "is not a number",
		"30k": "is not a number", "": "is not a number", "1.2.3": "is not a number", "١٢": "is not a number",
		"nan": "is not finite", "-Inf": "is not finite", "infinity": "is not finite", "1e400": "is too large",
		"1e150": "1" + strings.Repeat("0", 150), "1.1e150": "is too large", "-1.7e308": "is too large",
		"1e-400": "0",
	} {
		v, err := Parse(text)
		got := strconv.FormatFloat(v, 'f', -1, 64)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]float64{"1,234": 1234, "12.5": 12.5, "1,234,567.5": 1234567.5, "-1,000": -1000} {
		if v, err := Divided(text); err != nil || v != want {
			t.Errorf("%q: %g, %v", text, v, err)
		}
	}
	for _, text := range []string{"0,311", "1,1", "1234,567", ",100", "1,234,5"} {
		if v, err := Divided(text); err == nil {
			t.Errorf("%q: %g", text, v)
		}
	}
}

// Brackets mark the part that an expression takes.
func TestCut(t *testing.T) {
	for line, want := range map[string]string{
		"took: [30],5 us": "30,5", "[30],000": "30,000", "took: [30]_000 us": "30_000", "took: [0]x10 us": "0x10",
		"[0]xAB": "0xAB", "[0]b101": "0b101", "[1]e308": "1e308", "[3.0]e4 us": "3.0e4", "[1]e+308": "1e+308",
		"[1]E-3,": "1E-3", "[1]'037.28": "1'037.28", "[1]’037": "1’037", "[1]\u2009037.28": "1\u2009037.28",
		"[1.037],28": "1.037,28", "[1]m3s": "1m3s", "[1]:05 min": "1:05", "[12].5": "12.5", "[1]2": "12",
		"took: 1,[037] us": "1,037", "took: 1e[400] us": "1e400", "took: 1e+[40] us": "1e+40", "0x[10]": "0x10",
		"took: 30_[000] us": "30_000", "took: 1.[5]": "1.5", "took: .[5] us": ".5", "took: -[5] us": "-5",
		"took=-[5]": "-5", "1[.5]": "1.5", "took: [10]INFO2": "10INFO2", "[30]d4": "30d4",

		"took: [30].": "", "took: [30]. Done": "", "took: [30], next": "", "[30],": "", "[30]ms": "", "[30]us": "",
		"[30]s": "", "[30]%": "", "[30]x": "", "[30]x faster": "", "[30]kB/s": "", "[30]µs": "", "[0]B/op": "",
		"[0]bit": "", "[1.1]k tok/s": "", "[12]/16": "", "([30])": "", "[30]-40": "", "[1], 2, 3": "", "p99=[30]": "",
		"p99:[30]": "", "rank0:[30] us": "", "2026-[11]-26": "", "took... [5]": "", "took...[5]": "", "x[5]": "",
		"[12] 345": "", "[12]:30000": "", "[1.5]e": "", "[30]elapsed": "", "[abc]1": "", "[]": "", "- [5]": "",
		"v-[5]": "",
	} {
		head, rest, _ := strings.Cut(line, "[")
		taken, tail, _ := strings.Cut(rest, "]")
		if got := Cut([]byte(head+taken+tail), len(head), len(head)+len(taken), ""); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	if got := Cut([]byte("a,12,30,5"), 2, 4, ","); got != "" {
		t.Errorf("the comma of the expression ends no number: %q", got)
	}
	if got := Cut([]byte("a,1,30.5"), 4, 6, ","); got != "30.5" {
		t.Errorf("the comma of the expression ends every number: %q", got)
	}
}

func TestLeading(t *testing.T) {
	for text, want := range map[string][2]string{
		"1.5 ms": {"1.5", " ms"}, "100": {"100", ""}, "5.2ms": {"5.2", "ms"}, "97.5%": {"97.5", "%"},
		"n/a":        {"", "n/a"},
		"1,234.50 s": {"1,234.50", " s"}, "1.037,28": {"1.037,28", ""}, "1 037.28": {"1 037.28", ""},
		"1'037.28 s": {"1'037.28", " s"}, "0x40D": {"0x40D", ""}, "1.04k": {"1.04", "k"}, "12/16": {"12", "/16"},
		"10INFO hello": {"10", "INFO hello"}, "inf us": {"inf", " us"}, "-1.5e3 x": {"-1.5e3", " x"},
		"1 of 100": {"1", " of 100"}, "12  345": {"12", "  345"}, "1.5 100": {"1.5", " 100"}, ".5": {".5", ""},
		"10 s, 5": {"10", " s, 5"}, "3.": {"3.", ""},
	} {
		digits, behind := Leading(text)
		if got := [2]string{digits, behind}; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
