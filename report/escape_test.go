package report

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"golang.org/x/perf/benchfmt"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec/recorded"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/metrics/units"
	"github.com/benchgraph/benchgraph/stats"
)

func hostileTexts() []string {
	return []string{
		"", "plain", "a|b", `a\|b`, `\`, `a\`, "`", "``a`", "*x*", "_x_ a_b __c__ d__e", "<script>alert(1)</script>",
		"&lt; &amp; &#60;", "[x](http://y)", "![x](y)",
		"https://evil.example/a_b?c", "www.evil.example", "me@evil.example", "# heading", "- item", "1. item",
		"12) item", "+ x", "= x", "--- | ---", "~~x~~", "$x$",
		"a\nb\r\nc", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07after", "\x1b\x1b[0m[31m", "\x00\x01\x7f", "\xff\xfe",
		"\u202eevil", "\ufeff\u2028\u00a0", "=1+1", "@cmd", "-2+3", "'=1",
		"\t=1", "＝1", `"quoted", "twice"`, "]]>", "a b/c=d%e-8", "Benchmark", "Unit x better=lower", "ключ",
		"BenchmarkX 1 2 ns/op",
	}
}

// Whatever stands in a text, its Markdown reads as that text: no markup, no link, no further cell.
func checkMarkdown(t *testing.T, s string) {
	t.Helper()
	renderer := goldmark.New(goldmark.WithExtensions(extension.GFM))
	read := func(source, before, after string) string {
		t.Helper()
		var out bytes.Buffer
		if err := renderer.Convert([]byte(source), &out); err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(out.String(), before)
		inner, _, ends := strings.Cut(rest, after)
		if !found || !ends {
			t.Fatalf("%q: no %s in\n%s", source, before, out.String())
		}
		inner = strings.TrimSuffix(strings.TrimPrefix(inner, "<code>"), "</code>")
		if strings.Contains(inner, "<") {
			t.Fatalf("%q became markup: %s", source, inner)
		}
		return html.UnescapeString(inner)
	}
	want := clean(s)
	if want == "" {
		return
	}
	for name, got := range map[string]string{
		"sentence": read(prose(s)+"\n", "<p>", "</p>"),
		"item":     read("1. "+prose(s)+"\n", "<li>", "</li>"),
		"cell": read("| a | b |\n| --- | --- |\n| "+prose(s)+" | end |\n", "<tbody>\n<tr>\n<td>",
			"</td>\n<td>end</td>"),
		"code": read("x "+code(s)+"\n", "<p>x ", "</p>"),
		"code in cell": read("| a | b |\n| --- | --- |\n| "+codeCell(s)+" | end |\n", "<tbody>\n<tr>\n<td>",
			"</td>\n<td>end</td>"),
	} {
		if got != want {
			t.Errorf("%s: %q reads as %q, want %q", name, s, got, want)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range hostileTexts() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		fuzzing.Frugal(t, len(s), func() { checkMarkdown(t, s) })
	})
}

// hostile is a document that has s wherever text can stand.
func hostile(s string) Document {
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
	return Document{Title: s, Recorded: book, Pairs: []stats.Comparison{won}, Snapshot: Snapshot{s, time.Time{}, s, s},
		Universe: 2, Comparisons: []stats.Comparison{row, won},
		Measurements: []Measurement{{Benchmark: s, Commit: s, Candidate: s, Block: 1, Order: 1, Metric: s, Value: -1.5,
			Unit: s, Better: s, DeviceClass: s, Devices: []string{s}}},
		Failures: []Failed{{s, s, s, failure.Failure{
			Class: failure.Class(s), Rule: s, Stage: s, Subject: s, Evidence: s, Message: s, Remedy: s}, s,
			time.Second}}, Skips: []Skip{{s, s}},
		Hardware: []string{s},
		Commits:  []Commit{{s, s, s, s, s}}, Attempts: []Attempt{{Run: s, Address: s, Devices: []string{s},
			State: AttemptFailed, Class: s, Message: s}}, States: []State{{s, s, s, s, false, 1, s, s, 0}}}
}

// Every format of a document full of hostile text is read back by the format's own reader.
func FuzzRender(f *testing.F) {
	for _, s := range hostileTexts() {
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
	if got := strings.TrimPrefix(records[1][0], "'"); got != strings.TrimPrefix(clean(s), "'") {
		t.Fatalf("snapshot %q, want %q", got, clean(s))
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
			if len(record.Values) != 1 || record.GetConfig("snapshot") != clean(s) {
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
	var suites junitSuites
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
	if len(suites.Suites) != 1 || suites.Tests != 2 || suites.Failures != 1 || suites.Suites[0].Name != clean(s) {
		t.Fatalf("%q: %+v", s, suites)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[1;31mred\x1b[0m\n next ": "red  next",
		"\x1b]0;title\x07text":         "text",
		"\x1b]8;;http://x\x1b\\link":   "link",
		"a\u202eb\x00":                 "a\ufffdb\ufffd",
		"meta-llama/Llama-3.1-8B 模型":   "meta-llama/Llama-3.1-8B 模型",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
	long := strings.Repeat("x", 5000)
	if got := shorten(long); len(got) > 500 || !strings.Contains(got, "4600 more characters") {
		t.Errorf("shorten: %q", got)
	}
	model := "org/" + long
	if got := codeCell(model); !strings.Contains(got, model) {
		t.Error("a name was cut")
	}
}

// Names of variants become names of files: safe, and never two alike.
func TestFileNames(t *testing.T) {
	seen := map[string]string{}
	for _, variant := range append(hostileTexts(), "human", "a/b", "a_b", "a b", "../x", strings.Repeat("y", 300),
		strings.Repeat("y", 301)) {
		name := fileName(variant)
		if other, ok := seen[name]; ok && other != variant {
			t.Errorf("%q and %q are both %q", variant, other, name)
		}
		seen[name] = variant
		if name == "" || len(name) > 120 || strings.ContainsAny(name, "/\\ :|") {
			t.Errorf("%q became %q", variant, name)
		}
	}
	if fileName("human") != "human" {
		t.Error("a plain name was changed")
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
