package formats

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/number"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Captured outputs of the real tools are read as their golden files say, by the declared format and by auto alike.
func TestCapturedOutput(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*/*.[tj]*")
	if err != nil || len(inputs) < 10 {
		t.Fatalf("%d inputs, %v", len(inputs), err)
	}
	for _, input := range inputs {
		if strings.HasSuffix(input, ".golden") {
			continue
		}
		t.Run(input, func(t *testing.T) {
			format := filepath.Base(filepath.Dir(input))
			p, err := Lookup(format)
			if err != nil {
				t.Fatal(err)
			}
			got := render(t, p, input)
			golden := input + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if d := cmp.Diff(got, render(t, auto{}, input)); d != "" {
				t.Errorf("auto reads it differently: -declared +auto:\n%s", d)
			}
		})
	}
}

// render parses a file through a reader that cannot be rewound and gives single bytes, so that chunks never matter.
func render(t *testing.T, p metrics.Parser, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := p.Parse(metrics.Output{Stdout: iotest.OneByteReader(f)})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "format %s\n", r.Format)
	for _, s := range r.Samples {
		fmt.Fprintf(&b, "%s = %v %s (%q, line %d)\n", s.Metric, s.Value, s.Unit, s.Printed, s.Line)
	}
	if f := r.Failure; f != nil {
		fmt.Fprintf(&b, "failure %s: %s\n", f.Rule, f.Evidence)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning %d: %s\n", w.Line, w.Text)
	}
	fmt.Fprintf(&b, "labels %q\n", r.Labels)
	return b.String()
}

func parse(t *testing.T, p metrics.Parser, text string) metrics.Result {
	t.Helper()
	r, err := p.Parse(metrics.Output{Stdout: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// one is the only sample of a result.
func one(metric string, value float64, unit, printed string, line int) []metrics.Sample {
	return []metrics.Sample{{Metric: metric, Value: value, Unit: unit, Printed: printed, Line: line}}
}

func custom1(t *testing.T, d ...Definition) metrics.Parser {
	t.Helper()
	p, err := NewCustom(d)
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
			`the match takes 1, a part of "1,100"`},
		{"a part of a number with an exponent", "rate: 1.0e3 x\n", partly, nil,
			`the match takes 1.0, a part of "1.0e3"`},
		{"a part of a duration", "rate: 1m3s\n", partly, nil,
			`the match takes 1, a part of "1m3s"`},
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
			one("r", 759.1, "MB/s", "759.1", 1), "r: the output says ms of it, and unit says MB/s"},
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
			r := parse(t, custom1(t, c.d), c.text)
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

// A document's names come from the program: they are as clean as the lines of a text.
func TestNamesOfADocument(t *testing.T) {
	r := parse(t, jsonLeaves{}, `{"a\u001b[31m": {"b\u202e\n": 1}, "": 2}`)
	if len(r.Samples) != 1 || r.Samples[0].Metric != "a.b" {
		t.Errorf("%+v", r.Samples)
	}
	deep := parse(t, jsonLeaves{}, strings.Repeat(`{"a":`, 9000)+"1"+strings.Repeat("}", 9000)+"\n")
	if len(deep.Samples) != 0 {
		t.Errorf("%+v", deep.Samples)
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
		if _, err := NewCustom([]Definition{d}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", d, err, want)
		}
	}
	if _, err := NewCustom(nil); err == nil {
		t.Error("nothing to read is accepted")
	}
}

func TestLookup(t *testing.T) {
	for format, want := range map[string]string{"regex": "metric block", "xml": "unknown"} {
		if _, err := Lookup(format); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"hello":                   "",
		"BenchmarkX-2 10 3 ns/op": "gobench",
		"{\"level\":\"info\"}\nBenchmarkX-2 10 3 ns/op\n":   "gobench",
		"Benchmark results follow soon here\n{\n \"a\": 1}": "json",
		"[1] started\n": "",
		"[\n1]":         "json",
		"============ Serving Benchmark Result ============\nSuccessful requests: 1\n":          "vllm",
		"100%|##| 1/1============ Serving Benchmark Result ============\nBackend:     sglang\n": "sglang",
		"Throughput: 1.5 requests/s, 300.2 tokens/s":                                            "vllm",
		"Avg latency: 1.5 seconds":             "vllm",
		"Type         Ops/sec    Avg. Latency": "redis",
		"\"SET\",\"12\"\nSET: rps=1.0 (overall: 2.0)\rSET: 12.5 requests per second, p50=1 msec\n": "redis",
		"I served 100 requests per second": "",
	} {
		if got, err := Detect(strings.NewReader(text)); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

// Auto rewinds what can be rewound, keeps what cannot, and hands on the errors of both.
func TestAuto(t *testing.T) {
	text := "noise\nBenchmarkX-2 10 3 ns/op\n"
	for name, r := range map[string]io.Reader{"seeker": strings.NewReader(text),
		"pipe": io.MultiReader(strings.NewReader(text))} {
		got, err := auto{}.Parse(metrics.Output{Stdout: r})
		if err != nil || len(got.Samples) != 2 || got.Samples[0].Line != 2 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if r := parse(t, auto{}, "items: 3\n"); r.Format != "" || len(r.Warnings) != 1 || r.Labels[0] != "items" {
		t.Errorf("%+v", r)
	}
	broken := errors.New("broken")
	for _, p := range []metrics.Parser{auto{}, gobench{}, redis{}, jsonLeaves{},
		custom1(t, Definition{Name: "a", Match: "(a)"})} {
		if _, err := p.Parse(metrics.Output{Stdout: iotest.ErrReader(broken)}); !errors.Is(err, broken) {
			t.Errorf("%T: %v", p, err)
		}
	}
}

// A sample is finite, has a place in the labels, and its printed digits are its value.
func TestSamplesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Z][a-z]{0,5}(/[a-z]{1,3})?`)
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("Benchmark%s-8\t%d\t%v ns/op\n", name.Draw(t, "name"), rapid.IntRange(1, 9).Draw(t, "n"),
				rapid.Float64Range(0, 1e6).Draw(t, "v"))
		}), 1, 20).Draw(t, "rows")
		r, err := gobench{}.Parse(metrics.Output{Stdout: strings.NewReader(strings.Join(rows, ""))})
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

// Each execution reads the input in one format: the first number chooses it.
func FuzzParse(f *testing.F) {
	own, err := NewCustom([]Definition{{Name: "n", Match: `[:=]\s*(\S*)`}, {Name: "p", JSON: "a.b.0"}})
	if err != nil {
		f.Fatal(err)
	}
	parsers := []metrics.Parser{auto{}, gobench{}, redis{}, jsonLeaves{}, own, documentParser{"aiperf"},
		documentParser{"hyperfine"}, documentParser{"pytest"}, documentParser{"pyperf"}, documentParser{"googlebench"}}
	inputs, _ := filepath.Glob("testdata/*/*.[tj]*")
	for i := range parsers {
		for _, input := range inputs {
			if b := beginning(f, input); !strings.HasSuffix(input, ".golden") {
				f.Add(uint8(i), b)
			}
		}
		f.Add(uint8(i), []byte("\xef\xbb\xbf{\"a\":-Infinity}\n[[[[[[\n{\"b\":\"\\\"NaN\"}\x1b]0;\x1b[3"))
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		p := parsers[int(which)%len(parsers)]
		fuzzing.Frugal(t, len(b), func() { checkParse(t, p, b) })
	})
}

func checkParse(t *testing.T, p metrics.Parser, b []byte) {
	r, err := p.Parse(metrics.Output{Stdout: bytes.NewReader(b)})
	if err != nil && p != (auto{}) {
		t.Fatalf("%T: %v", p, err)
	}
	for _, s := range r.Samples {
		if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || s.Metric == "" ||
			strings.ContainsFunc(s.Metric, unicode.IsControl) {
			t.Fatalf("%T: %+v", p, s)
		}
	}
	if len(r.Labels) > collect.MaxLabels || len(r.Warnings) > collect.MaxWarnings+1 ||
		len(r.Samples) > 2*collect.MaxSamples {
		t.Fatalf("%T: bounds exceeded", p)
	}
}

// beginning is the first part of a captured output: long seeds make every execution slow and few of them interesting.
func beginning(f *testing.F, path string) []byte {
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	return b[:min(len(b), 2<<10)]
}

// An expression that matches everywhere looks at each byte of a long line some times, and not at all of them each time.
func TestManyMatchesInALineAreBounded(t *testing.T) {
	p, err := NewCustom([]Definition{{Name: "m", Match: `()`}, {Name: "n", Match: `(\d)`}})
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

// Definitions are the user's, but what they read is not: any pair of them gives finite samples.
func FuzzCustom(f *testing.F) {
	f.Add(`rate=(\S+)`, "a.b[0].c", []byte("rate=3\n{\"a\": {\"b\": [{\"c\": 4}]}}\n"))
	f.Add(`(\d+)?x`, "$..-1", []byte("x\n[1, [2, NaN]]\n"))
	f.Add(`()`, "", []byte("\xff\x00\n"))
	f.Fuzz(func(t *testing.T, match, path string, b []byte) {
		if len(match) > 100 || strings.ContainsAny(match, "{") {
			t.Skip() // the user's own expression; how large it may be is the compiler's to bound
		}
		p, err := NewCustom([]Definition{{Name: "m", Match: match}, {Name: "p", JSON: path}})
		if err != nil {
			return
		}
		fuzzing.Frugal(t, len(b), func() { checkParse(t, p, b) })
	})
}

// Lines that are longer than any of a result are told of, and do not shift the numbers of those after them.
func TestLongLines(t *testing.T) {
	r := parse(t, redis{}, strings.Repeat("x", lines.Max)+"\n"+strings.Repeat("y",
		lines.Max+1)+"\nSET: 1 requests per second\n")
	if len(r.Samples) != 2 || r.Samples[0].Line != 3 || len(r.Warnings) != 1 || r.Warnings[0].Line != 2 {
		t.Errorf("%+v", r)
	}
}
