package report

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/perf/benchfmt"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec/recorded"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/metrics/units"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
)

// hostile is a document that has s wherever text can stand.
func hostile(s string) document.Document {
	row := stats.Comparison{Compare: s, Benchmark: s, Commit: s, Candidate: s, Against: s, Metric: s, Primary: true,
		Verdict: stats.Verdict{Outcome: stats.Failed, Reason: s, Better: s,
			Caveats: []stats.Caveat{{Kind: "fix", Text: s}, {Kind: "fix", Text: s}}}, Unit: s,
		Methodology: s}
	won := row
	won.Candidate, won.Outcome, won.Blocks, won.P, won.Effect, won.Low = s+"2", stats.Win, 7, 0.0156, 0.1, -0.05
	number, count := 1.5, 7
	book := recorded.Keep([]recorded.Commit{{Name: "c" + s, Model: s}}, []recorded.Line{
		{Commit: "c" + s, Side: s, Agent: s, Runner: s, Metric: s, Value: &number, Unit: s, Model: s, Installed: s,
			Methodology: s, Source: s},
		{Commit: "c" + s, Side: "agent", Agent: s, Status: "failed", Cause: s, Evidence: s, Flags: []string{s},
			Source: s},
		{Claim: s, Count: &count, Partition: s, Source: s}, {Commit: s, Side: s, Against: s, Verdict: s},
	}, units.Convert)
	return document.Document{Title: s, Recorded: book, Pairs: []stats.Comparison{won},
		Snapshot: document.Snapshot{ID: s, Time: time.Time{}, Version: s, Revision: s},
		Universe: 2, Comparisons: []stats.Comparison{row, won},
		Measurements: []document.Measurement{{Benchmark: s, Commit: s, Candidate: s, Block: 1, Order: 1, Metric: s,
			Value: -1.5,
			Unit:  s, Better: s, DeviceClass: s, Devices: []string{s}}},
		Failures: []document.Failed{{Address: s, Commit: s, Candidate: s, Failure: failure.Failure{
			Class: failure.Class(s), Rule: s, Stage: s, Subject: s, Evidence: s, Message: s, Remedy: s}, Log: s,
			Took: time.Second}}, Skips: []document.Skip{{Address: s, Reason: s}},
		Hardware: []string{s},
		Commits: []document.Commit{{Name: s, Title: s, Rev: s, Parent: s,
			Model: s}}, Attempts: []document.Attempt{{Run: s, Address: s, Devices: []string{s},
			State: document.AttemptFailed, Class: s, Message: s}},
		States: []document.State{{Benchmark: s, Commit: s, Variant: s, Candidate: s, Baseline: false, GPUs: 1,
			State: s, Reason: s, Blocks: 0}}}
}

// Every format of a document full of hostile text is read back by the format's own reader.
func FuzzRender(f *testing.F) {
	for _, s := range fuzzing.Hostile() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		fuzzing.Frugal(t, len(s), func() {
			for _, name := range Formats() {
				files, err := Render(hostile(s), name)
				if err != nil {
					t.Fatal(err)
				}
				for file, content := range files {
					if filepath.Base(file) != file || !utf8.Valid(content) || bytes.ContainsAny(content, "\x1b\x00") {
						t.Fatalf("%q: unsafe name or content\n%s", file, content)
					}
					check := map[string]func(*testing.T, string, []byte){"json": readJSON, "csv": readCSV,
						"benchfmt": readBenchfmt, "junit": readJUnit,
						"github-action-benchmark": readAnyJSON, "bmf": readAnyJSON, "pytorch": readAnyJSON,
						"trace": readAnyJSON, "otel": readAnyJSON}[name]
					if check != nil {
						check(t, s, content)
					}
				}
			}
		})
	})
}

func readAnyJSON(t *testing.T, _ string, content []byte) {
	if !json.Valid(content) {
		t.Fatalf("no JSON: %s", content)
	}
}

func readJSON(t *testing.T, s string, content []byte) {
	var document struct{ Comparisons []stats.Comparison }
	if err := json.Unmarshal(content, &document); err != nil || len(document.Comparisons) != 2 {
		t.Fatalf("%v: %s", err, content)
	}
	if got := document.Comparisons[1].Reason; utf8.ValidString(s) && got != s {
		t.Fatalf("reason %q, want %q", got, s)
	}
}

func readCSV(t *testing.T, s string, content []byte) {
	records, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	if err != nil || len(records) < 2 {
		t.Fatalf("%v: %s", err, content)
	}
	for _, value := range records[1] {
		number := value == "-1.5" || value == "-0.05"
		if value != "" && strings.ContainsAny(value[:1], "=+-@\t\r") && !number {
			t.Fatalf("%q: a cell begins like a formula: %q", s, value)
		}
	}
	if got := strings.TrimPrefix(records[1][0], "'"); got != strings.TrimPrefix(printable.Line(s), "'") {
		t.Fatalf("snapshot %q, want %q", got, printable.Line(s))
	}
}

func readBenchfmt(t *testing.T, s string, content []byte) {
	r := benchfmt.NewReader(bytes.NewReader(content), "x")
	results := 0
	for r.Scan() {
		switch record := r.Result().(type) {
		case *benchfmt.SyntaxError:
			t.Fatalf("%q: %v\n%s", s, record, content)
		case *benchfmt.Result:
			results++
			if len(record.Values) != 1 || record.GetConfig("snapshot") != printable.Line(s) {
				t.Fatalf("%q: %v, %v", s, record.Values, record.Config)
			}
			if v := record.Values[0]; v.Value != -1.5 && v.OrigValue != -1.5 {
				t.Fatalf("%q: %v", s, v)
			}
			if _, parts := record.Name.Parts(); len(parts) != 1 {
				t.Fatalf("%q: name %s falls into %q", s, record.Name, parts)
			}
		}
	}
	if r.Err() != nil || results != 1 {
		t.Fatalf("%q: %d results, %v\n%s", s, results, r.Err(), content)
	}
}

func readJUnit(t *testing.T, s string, content []byte) {
	var suites struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Suites   []struct {
			Name string `xml:"name,attr"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(content, &suites); err != nil {
		t.Fatalf("%v: %s", err, content)
	}
	decoder := xml.NewDecoder(bytes.NewReader(content))
	for {
		if _, err := decoder.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if len(suites.Suites) != 1 || suites.Tests != 2 || suites.Failures != 1 ||
		suites.Suites[0].Name != printable.Line(s) {
		t.Fatalf("%q: %+v", s, suites)
	}
}

// The tool for which the format exists reads the files and compares them.
func TestBenchstatReadsIt(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go tool")
	}
	files, err := Render(campaign(), "benchfmt")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(context.Background(), tool, "run", "golang.org/x/perf/cmd/benchstat", "-format",
		"csv",
		filepath.Join(dir, "bench-baseline.txt"), filepath.Join(dir, "bench-human.txt"))
	var problems strings.Builder
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		t.Fatalf("benchstat: %v\n%s", err, problems.String())
	}
	for _, want := range []string{"Serving/commit=22d33bac", "output_token_throughput-tok/s", "ttft_p99-ms",
		"p=0.001 n=7"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s%s", want, out, problems.String())
		}
	}
}
