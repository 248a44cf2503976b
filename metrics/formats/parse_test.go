package formats

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/custom"
	"github.com/benchgraph/benchgraph/metrics/gobench"
	"github.com/benchgraph/benchgraph/metrics/metricstest"
	"github.com/benchgraph/benchgraph/metrics/redis"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Captured outputs of the real tools give their golden files, with the declared format and with auto alike.
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

// render parses a file through a reader that cannot be rewound and returns single bytes, so that chunks never matter.
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

// The program chooses the names in a document: they are cleaned like the lines of a text.
func TestNamesOfADocument(t *testing.T) {
	r := metricstest.Parse(t, jsonLeaves{}, `{"a\u001b[31m": {"b\u202e\n": 1}, "": 2}`)
	if len(r.Samples) != 1 || r.Samples[0].Metric != "a.b" {
		t.Errorf("%+v", r.Samples)
	}
	deep := metricstest.Parse(t, jsonLeaves{}, strings.Repeat(`{"a":`, 9000)+"1"+strings.Repeat("}", 9000)+"\n")
	if len(deep.Samples) != 0 {
		t.Errorf("%+v", deep.Samples)
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

// Auto rewinds readers that can be rewound, copies the others, and returns the errors of both.
func TestAuto(t *testing.T) {
	text := "noise\nBenchmarkX-2 10 3 ns/op\n"
	for name, r := range map[string]io.Reader{"seeker": strings.NewReader(text),
		"pipe": io.MultiReader(strings.NewReader(text))} {
		got, err := auto{}.Parse(metrics.Output{Stdout: r})
		if err != nil || len(got.Samples) != 2 || got.Samples[0].Line != 2 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if r := metricstest.Parse(t, auto{}, "items: 3\n"); r.Format != "" || len(r.Warnings) != 1 ||
		r.Labels[0] != "items" {
		t.Errorf("%+v", r)
	}
	broken := errors.New("broken")
	for _, p := range []metrics.Parser{auto{}, gobench.Parser{}, redis.Parser{}, jsonLeaves{},
		defined(t, custom.Definition{Name: "a", Match: "(a)"})} {
		if _, err := p.Parse(metrics.Output{Stdout: iotest.ErrReader(broken)}); !errors.Is(err, broken) {
			t.Errorf("%T: %v", p, err)
		}
	}
}

// Each execution reads the input in one format, which the first number chooses.
func FuzzParse(f *testing.F) {
	own, err := custom.New([]custom.Definition{{Name: "n", Match: `[:=]\s*(\S*)`}, {Name: "p", JSON: "a.b.0"}})
	if err != nil {
		f.Fatal(err)
	}
	parsers := []metrics.Parser{auto{}, gobench.Parser{}, redis.Parser{}, jsonLeaves{}, own}
	for _, format := range []string{"aiperf", "hyperfine", "pytest", "pyperf", "googlebench"} {
		p, err := Lookup(format)
		if err != nil {
			f.Fatal(err)
		}
		parsers = append(parsers, p)
	}
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
		var err error
		fuzzing.Frugal(t, len(b), func() { err = metricstest.Check(t, p, b) })
		if err != nil && p != (auto{}) {
			t.Fatalf("%T: %v", p, err)
		}
	})
}

// beginning returns the first part of a captured output: long seeds make every execution slow, and most add nothing.
func beginning(f *testing.F, path string) []byte {
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	return b[:min(len(b), 2<<10)]
}

// A document before the last one, or one that cannot be read, may have other values.
func TestOneNumberInDocuments(t *testing.T) {
	d := custom.Definition{Name: "took", JSON: "t"}
	for text, want := range map[string]string{
		`{"t": 5}`:                             "",
		"{\"t\": 5}\n{\"t\": 5.0}":             "",
		"{\"t\": null}\n{\"t\": 5}":            "",
		"{\"t\": 5}\n{\"t\": 6}\n{\"t\": 5}\n": "first as 6",
		"{\"t\": NaN}\n{\"t\": 5}":             "first as NaN",
		"{\"t\": \"9,5\"}\n{\"t\": 5}":         "first as 9,5",
		"{\"t\": 5}\n{\"t\": 6, ":              "not all documents",
	} {
		for name, p := range map[string]metrics.Parser{"path": defined(t, d), "all": jsonLeaves{}} {
			metric := map[string]string{"path": "took", "all": "t"}[name]
			r := metricstest.Parse(t, p, text)
			if why := r.Doubts[metric]; (want == "") != (why == "") || !strings.Contains(why, want) {
				t.Errorf("%s, %s: doubt %q, want %q", text, name, why, want)
			}
		}
	}
	var full strings.Builder
	full.WriteString("{")
	for i := range collect.MaxSamples {
		fmt.Fprintf(&full, `"k%d": 1, `, i)
	}
	r := metricstest.Parse(t, jsonLeaves{}, full.String()+"\"z\": 0}\n{\"t\": 6}\n{\"t\": 5}\n")
	if r.Doubts["t"] == "" {
		t.Errorf("%v", r.Warnings)
	}
}

// defined returns the parser of one custom metric.
func defined(t *testing.T, d custom.Definition) metrics.Parser {
	t.Helper()
	p, err := custom.New([]custom.Definition{d})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
