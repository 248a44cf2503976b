package custom

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/metricstest"
	"github.com/google/go-cmp/cmp"
)

// one is the only sample of a result.
func one(metric string, value float64, unit, printed string, line int) []metrics.Sample {
	return []metrics.Sample{{Metric: metric, Value: value, Unit: unit, Printed: printed, Line: line}}
}

func custom1(t *testing.T, d ...Definition) metrics.Parser {
	t.Helper()
	p, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMetricsOfOnesOwn(t *testing.T) {
	items := Definition{Name: "items", Match: `work done: (\S+)`, Unit: "items/s"}
	partly := Definition{Name: "r", Match: `rate: ([0-9.]+)`}
	for _, c := range []struct {
		name, text string
		d          Definition
		want       []metrics.Sample
		warning    string
	}{
		{"one line", "work done: 12.50 items/s\n", items, one("items", 12.5, "items/s", "12.50", 1), ""},
		{"unit from the output", "took 12.5 msec.\n", Definition{Name: "t", Match: `took (\S+)`},
			one("t", 12.5, "ms", "12.5", 1), ""},
		{"no unit in the output", "took 12.5 and more\n", Definition{Name: "t", Match: `took (\S+)`},
			one("t", 12.5, "", "12.5", 1), ""},
		{"separators", "work done: 1,234,567.5\n", items, one("items", 1234567.5, "items/s", "1,234,567.5", 1), ""},
		{"the last one counts", "work done: 1\n\nwork done: 2\n", items, one("items", 2, "items/s", "2", 3),
			"more than once, first as 1 in line 1"},
		{"equal ones are not ambiguous", "work done: 2\nwork done: 2.0\n", items,
			one("items", 2, "items/s", "2.0", 2), ""},
		{"a progress bar", "work done: 1\rwork done: 3\r\n", items, one("items", 3, "items/s", "3", 1),
			"more than once"},
		{"not finite", "work done: NaN\n", items, nil, `items: "NaN" is not finite`},
		{"too large", "work done: 1e400\n", items, nil, `items: "1e400" is too large`},
		{"no number", "work done: soon\n", items, nil, `items: "soon" is not a number`},
		{"hexadecimal", "work done: 0x10\n", items, nil, "is not a number"},
		{"the output was cut", "work done: 12", items, one("items", 12, "items/s", "12", 1),
			"the output ends inside this line"},
		{"group left out", "ab\n", Definition{Name: "n", Match: `a(\d)?b`}, nil, "not the group"},
		{"decorated", "2026-11-21T00:44:00Z \x1b[1mwork\x1b[0m d\x00one: 12\u200b\r\n", items,
			one("items", 12, "items/s", "12", 1), ""},
		{"coloured", "work done: \x1b[1;32m12\x1b[0m\x1b[K\n\x1b]0;bench 100 %\a\n", items,
			one("items", 12, "items/s", "12", 1), ""},
		{"the label has lost a letter", "work done: 13\nm\x1b[work done: 12\n", items,
			one("items", 13, "items/s", "13", 1), `items: a terminal sequence hides "work done: 12"`},
		{"the label stands in a title", "work done: 13 m\x1b]work done: 12 m\x1b\\\n", items,
			one("items", 13, "items/s", "13", 1), `items: a terminal sequence hides "work done: 12"`},
		{"path", `{"a": {"b.c": [1, {"d_ms": 7.50}]}}`, Definition{Name: "d", JSON: "$.a.b.c[1].d_ms"},
			one("d", 7.5, "ms", "7.50", 0), ""},
		{"a key twice", `{"b": [{"a": 1, "x": [2, {"n": NaN}], "\u0061": 2}]}`,
			Definition{Name: "d", JSON: "b.0.a"}, one("d", 2, "", "2", 0),
			"first as 1 in an earlier document"},
		{"a key twice with one value", `{"x": 1, "a": 2, "x:": "}:\"", "a": 2.0, "x": 3}`,
			Definition{Name: "d", JSON: "a"}, one("d", 2, "", "2.0", 0), ""},
		{"path from the end", `{"a": [1, 2, 3]}`, Definition{Name: "d", JSON: "a.-1", Unit: "seconds"},
			one("d", 3, "s", "3", 0), ""},
		{"path in the last line", "{\"a\": 1}\n{\"a\": 2}\n", Definition{Name: "d", JSON: "a"},
			one("d", 2, "", "2", 0), "first as 1 in an earlier document"},
		{"the same path twice with one value", "{\"a\": 2}\n{\"a\": 2.0}\n", Definition{Name: "d", JSON: "a"},
			one("d", 2, "", "2.0", 0), ""},
		{"a part of a number with separators", "rate: 1,100 x\n", partly, nil,
			`the match takes 1, which is only a part of "1,100"`},
		{"a part of a number with an exponent", "rate: 1.0e3 x\n", partly, nil,
			`the match takes 1.0, which is only a part of "1.0e3"`},
		{"a part of a duration", "rate: 1m3s\n", partly, nil,
			`the match takes 1, which is only a part of "1m3s"`},
		{"a list", "rate: 1, 2, 3\n", partly, one("r", 1, "", "1", 1), ""},
		{"the end of a sentence", "rate: 1.5, done.\n", partly, one("r", 1.5, "", "1.5", 1), ""},
		{"a letter that multiplies", "rate: 1.1k\n", partly, one("r", 1.1, "k", "1.1", 1), ""},
		{"a letter that multiplies a unit", "rate: 1.1k tok/s\n", partly,
			one("r", 1.1, "k tok/s", "1.1", 1), ""},
		{"a letter that begins a unit", "rate: 1.1KB\n", partly, one("r", 1.1, "KB", "1.1", 1), ""},
		{"a letter before a declared unit", "work done: 1.1k\n",
			Definition{Name: "items", Match: `done: ([0-9.]+)`, Unit: "items/s"},
			one("items", 1.1, "k items/s", "1.1", 1), ""},
		{"unit in the label", "rate (ms): 1.1\n", Definition{Name: "r", Match: `rate.*: ([0-9.]+)`},
			one("r", 1.1, "ms", "1.1", 1), ""},
		{"a unit of another quantity", "sort time: 759.1 ms\n",
			Definition{Name: "r", Match: `time: ([0-9.]+)`, Unit: "MB/s"},
			one("r", 759.1, "MB/s", "759.1", 1), "r: the output prints the unit ms, and unit is MB/s"},
		{"a unit that nobody knows", "speed: 7 ms\n", Definition{Name: "r", Match: `speed: ([0-9.]+)`, Unit: "points"},
			one("r", 7, "points", "7", 1), ""},
		{"no unit in the label", "rate (n/a): 1.1\n", Definition{Name: "r", Match: `rate.*: ([0-9.]+)`},
			one("r", 1.1, "", "1.1", 1), ""},
		{"path to a quoted number", `{"a": "2"}`, Definition{Name: "d", JSON: "a"}, one("d", 2, "", "2", 0),
			"stands in quotes"},
		{"path to NaN", `{"a": NaN}`, Definition{Name: "d", JSON: "a"}, nil, "is not finite"},
		{"path to an object", `{"a": {}}`, Definition{Name: "d", JSON: "a"}, nil, "is an object"},
		{"path to null", `{"a": null}`, Definition{Name: "d", JSON: "a"}, nil, "is null"},
		{"path to nothing", `{"a": [1]}`, Definition{Name: "d", JSON: "a.1"}, nil, "nothing at a.1"},
		{"no document", "hello\n", Definition{Name: "d", JSON: "a"}, nil, "no JSON object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := metricstest.Parse(t, custom1(t, c.d), c.text)
			if d := cmp.Diff(c.want, r.Samples); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if all := fmt.Sprint(r.Warnings); c.warning == "" && len(r.Warnings) > 0 ||
				!strings.Contains(all, c.warning) {
				t.Errorf("warnings %s, want %q", all, c.warning)
			}
		})
	}
}

// Expressions and paths may be mixed, over the standard output and files.
func TestMetricsOfSeveralFiles(t *testing.T) {
	p := custom1(t,
		Definition{Name: "rate", Match: `rate=(\S+)`},
		Definition{Name: "p99", JSON: "p99", Unit: "ms"},
		Definition{Name: "deep", JSON: "x.y", File: "out.json"},
		Definition{Name: "text", Match: `(\d+) files`, File: "out.json"},
		Definition{Name: "gone", JSON: "x", File: "missing.json"})
	out := metrics.Output{
		Stdout: strings.NewReader("rate=3\n{\"p99\": 4}\n"),
		Open: func(name string) (io.ReadCloser, error) {
			if name != "out.json" {
				return nil, os.ErrNotExist
			}
			return io.NopCloser(strings.NewReader("7 files\n{\"x\": {\"y\": 5}}")), nil
		},
	}
	r, err := p.Parse(out)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, s := range r.Samples {
		got[s.Metric] = s.Value
	}
	if d := cmp.Diff(map[string]float64{"rate": 3, "p99": 4, "deep": 5, "text": 7}, got); d != "" {
		t.Error(d)
	}
	if !strings.Contains(fmt.Sprint(r.Warnings), "missing.json: the command left no such file in $OUT") {
		t.Error(r.Warnings)
	}
}

func TestBadDefinitions(t *testing.T) {
	for want, d := range map[string]Definition{
		"no name":                      {Match: "(a)"},
		"exactly one of match and":     {Name: "a"},
		"exactly one of match":         {Name: "a", Match: "(a)", JSON: "b"},
		"missing closing":              {Name: "a", Match: "(a"},
		"put it in parentheses":        {Name: "a", Match: "a"},
		`metric "a": match: error par`: {Name: "a", Match: "a**"},
	} {
		if _, err := New([]Definition{d}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", d, err, want)
		}
	}
	if _, err := New(nil); err == nil {
		t.Error("nothing to read is accepted")
	}
}

// For an expression that matches everywhere, each byte of a long line is read a few times, and not once per match.
func TestManyMatchesInALineAreBounded(t *testing.T) {
	p, err := New([]Definition{{Name: "m", Match: `()`}, {Name: "n", Match: `(\d)`}})
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("1 ms ", lines.Max/5)
	var r metrics.Result
	fuzzing.Frugal(t, len(line), func() { r, err = p.Parse(metrics.Output{Stdout: strings.NewReader(line)}) })
	if err != nil || !slices.ContainsFunc(r.Warnings, func(w metrics.Warning) bool {
		return strings.Contains(w.Text, "more than 1000 matches in one line")
	}) {
		t.Errorf("%+v, %v", r.Warnings, err)
	}
}

// A text before a number is a label; times and addresses are none.
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
	if d := cmp.Diff(want, metricstest.Parse(t, p, text).Labels); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, "label%d: 1\n", i)
	}
	if n := len(metricstest.Parse(t, p, many.String()).Labels); n != collect.MaxLabels {
		t.Error(n)
	}
}

// A line that an engine logs while it works is no result, even if a custom metric matches it.
func TestEngineProgressIsNoResult(t *testing.T) {
	p := custom1(t, Definition{Name: "rate", Match: `throughput: ([0-9.]+)`})
	text := "throughput: 12 tokens/s\nINFO 05-04 16:28:48 metrics.py:460] Avg prompt throughput: 0.0 tokens/s, Avg " +
		"generation throughput: 1614.4 tokens/s\n"
	r := metricstest.Parse(t, p, text)
	if len(r.Samples) != 1 || r.Samples[0].Value != 12 || len(r.Warnings) != 1 ||
		!strings.Contains(r.Warnings[0].Text, "an engine's progress") {
		t.Errorf("%+v", r)
	}
}

// Definitions come from the user, but the output does not: any pair of them gives finite samples.
func FuzzParse(f *testing.F) {
	f.Add(`rate=(\S+)`, "a.b[0].c", []byte("rate=3\n{\"a\": {\"b\": [{\"c\": 4}]}}\n"))
	f.Add(`(\d+)?x`, "$..-1", []byte("x\n[1, [2, NaN]]\n"))
	f.Add(`()`, "", []byte("\xff\x00\n"))
	f.Fuzz(func(t *testing.T, match, path string, b []byte) {
		if len(match) > 100 || strings.ContainsAny(match, "{") {
			t.Skip() // the user's own expression; how large it may be is the compiler's to bound
		}
		p, err := New([]Definition{{Name: "m", Match: match}, {Name: "p", JSON: path}})
		if err != nil {
			return
		}
		fuzzing.Frugal(t, len(b), func() { err = metricstest.Check(t, p, b) })
		if err != nil {
			t.Fatal(err)
		}
	})
}

// A path into the document of a tool that reports failed requests gives no valid result.
func TestDocumentOfFailedRequests(t *testing.T) {
	p := custom1(t, Definition{Name: "rate", JSON: "results_rate"})
	for text, want := range map[string]string{
		`{"results_rate": 2, "results_num_completed_requests": 8, "results_number_errors": 2}`: "requests_failed",
		`{"results_rate": 2, "results_num_completed_requests": 8, "results_number_errors": 0}`: "",
	} {
		r, err := p.Parse(metrics.Output{Stdout: strings.NewReader(text)})
		got := ""
		if r.Failure != nil {
			got = r.Failure.Rule
		}
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}
