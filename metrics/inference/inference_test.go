package inference_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/internal/needtest"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/formats"
	"github.com/benchgraph/benchgraph/metrics/invalid"
	"github.com/benchgraph/benchgraph/metrics/metricstest"
	"github.com/benchgraph/benchgraph/metrics/number"
)

// output is one captured output with its expected figures.
type output struct{ name, text, document, command, want string }

// outputs returns the captured outputs of the archives, by name.
func outputs(t testing.TB) []output {
	t.Helper()
	var all []output
	for _, name := range []string{"vllm", "sglang", "made"} {
		a, err := txtar.ParseFile("testdata/" + name + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			base, kind, _ := strings.Cut(f.Name, ".")
			at := slices.IndexFunc(all, func(c output) bool { return c.name == base })
			if at < 0 {
				at = len(all)
				all = append(all, output{name: base})
			}
			c := &all[at]
			switch kind {
			case "txt":
				c.text = string(f.Data)
			case "json":
				c.document = string(f.Data)
			case "command":
				c.command = string(f.Data)
			case "want":
				c.want = string(f.Data)
			}
		}
	}
	return all
}

// figures writes a result in the form of the archives.
func figures(r metrics.Result) string {
	var lines []string
	for _, s := range r.Samples {
		lines = append(lines, fmt.Sprintf("%s = %s %s", s.Metric, strconv.FormatFloat(s.Value, 'f', -1, 64), s.Unit))
	}
	slices.Sort(lines)
	if r.Format != "" {
		lines = append([]string{"format " + r.Format}, lines...)
	}
	if r.Failure != nil {
		lines = append(lines, "failure "+r.Failure.Rule)
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// parse reads an output with a format, from a reader that cannot be rewound.
func parse(t *testing.T, format, text, command string) metrics.Result {
	t.Helper()
	p, err := formats.Lookup(format)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Parse(metrics.Output{Stdout: strings.NewReader(text), Command: command})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Values, units and validity of every output are as expected, whichever format is declared.
func TestOutputs(t *testing.T) {
	for _, c := range outputs(t) {
		for _, format := range []string{"auto", "vllm", "sglang"} {
			t.Run(c.name+"/"+format, func(t *testing.T) {
				got, want := figures(parse(t, format, c.text, c.command)), c.want
				if format == "sglang" { // whose the output is, it does not always say
					got, want = withoutFormat(got), withoutFormat(want)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
			})
		}
	}
}

func withoutFormat(figures string) string {
	if strings.HasPrefix(figures, "format ") {
		_, figures, _ = strings.Cut(figures, "\n")
	}
	return figures
}

// The file of a run has the figures of its table, as far as the file has them, and the same validity.
func TestDocuments(t *testing.T) {
	documents := 0
	for _, c := range outputs(t) {
		if c.document == "" {
			continue
		}
		documents++
		t.Run(c.name, func(t *testing.T) {
			text, file := parse(t, "auto", c.text, ""), parse(t, "auto", c.document, "")
			if (text.Failure == nil) != (file.Failure == nil) || file.Format != text.Format {
				t.Errorf("%s, %+v; printed: %s, %+v", file.Format, file.Failure, text.Format, text.Failure)
			}
			both := 0
			for _, s := range file.Samples {
				printed, ok := metrics.Find(text.Samples, s.Metric)
				if !ok {
					continue
				}
				both++
				_, decimals, _ := strings.Cut(printed.Printed, ".")
				rounded := strconv.FormatFloat(s.Value, 'f', len(decimals), 64)
				if v, err := number.Parse(rounded); err != nil ||
					math.Abs(v-printed.Value) > 1.01*math.Pow10(-len(decimals)) || s.Unit != printed.Unit {
					t.Errorf("%s is %v %s in the file, and %s %s is printed", s.Metric, s.Value, s.Unit,
						printed.Printed, printed.Unit)
				}
			}
			if both < 4 {
				t.Errorf("%d metrics in common", both)
			}
		})
	}
	if documents < 15 {
		t.Errorf("%d documents", documents)
	}
}

// Programs and people add texts before and in lines; the figures stay the same.
func TestNoise(t *testing.T) {
	needtest.NoRace(t)
	lines := func(before, after string) func(string) string {
		return func(text string) string {
			parts := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			return before + strings.Join(parts, after+"\n"+before) + after + "\n"
		}
	}
	progress := "INFO 05-04 16:28:48 metrics.py:460] Avg prompt throughput: 8056.3 tokens/s, Avg generation " +
		"throughput: 1614.4 tokens/s\n" +
		"[2025-03-01 10:00:00 TP0] Decode batch. #running-req: 1, gen throughput (token/s): 100.0, #queue-req: 0\n"
	for name, change := range map[string]func(string) string{
		"carriage returns": func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") },
		"container":        lines("2024-09-25T10:11:12.123456789Z ", ""),
		"engine":           lines("(EngineCore_DP0 pid=123) ", ""),
		"stamp and server": lines("2024-09-25T10:11:12Z (APIServer pid=1) ", ""),
		"ray":              lines("(task, pid=25491) ", ""),
		"ray with address": lines("(bench pid=25491, ip=10.0.0.1) ", ""),
		"quoted":           lines("> ", ""),
		"quoted twice":     lines(">> ", ""),
		"rank":             lines("[rank0]: ", ""),
		"slurm":            lines("0: ", ""),
		"compose":          lines("vllm-1  | ", ""),
		"pod":              lines("[pod/bench-0/client] ", ""),
		"date":             lines("2024-09-25 10:11:12,123 ", ""),
		"logging":          lines("2024-09-25 10:11:12,123 - bench.run - INFO - ", ""),
		"basic logging":    lines("INFO:bench.run:", ""),
		"loguru":           lines("2024-09-25 10:11:12.123 | INFO     | bench:run:42 - ", ""),
		"containerd":       lines("2024-09-25T10:11:12.123456789Z stdout F ", ""),
		"job and step":     lines("bench\tRun the client\t2024-09-25T10:11:12.1234567Z ", ""),
		"comment":          lines("// ", ""),
		"debug of GitHub":  lines("2024-09-25T10:11:12.1234567Z ##[debug]", ""),
		"Markdown":         lines("| ", " |"),
		"indented":         lines("      ", ""),
		"colour":           lines("\x1b[32m", "\x1b[0m"),
		"zero width":       lines("", "\u200b"),
		"padding":          lines("", strings.Repeat(" ", 60)),
		"engine's log": func(text string) string {
			return progress + strings.Replace(text, "\n", "\n"+progress, 3) + progress
		},
		"printed twice":   func(text string) string { return text + "BENCHMARK_DONE\n" + text },
		"byte order mark": func(text string) string { return "\ufeff" + text },
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range outputs(t) {
				if c.want == "" || name == "printed twice" &&
					(c.name == "one-batch-unmarked" || c.name == "head-cut-off") {
					continue
				}
				if got := figures(parse(t, "auto", change(c.text), c.command)); got != c.want &&
					!strings.Contains(c.want, "_incomplete") {
					t.Errorf("%s: %s", c.name, cmp.Diff(c.want, got))
				}
			}
		})
	}
}

// An output that was cut off anywhere gives only numbers of the whole output, or is no valid result.
func TestCuts(t *testing.T) {
	needtest.NoRace(t)
	for _, c := range outputs(t) {
		if c.name == "001" { // a client that prints four decimals: two of them look like all
			continue
		}
		whole := parse(t, "vllm", c.text, c.command)
		for end := range c.text {
			if !strings.ContainsAny(c.text[max(0, end-1):end], "0123456789.") {
				continue
			}
			r := parse(t, "vllm", c.text[:end], c.command)
			for _, s := range r.Samples {
				full, ok := metrics.Find(whole.Samples, s.Metric)
				if r.Failure == nil && whole.Failure == nil && (!ok || math.Abs(full.Value-s.Value) > 1e-9*full.Value ||
					full.Unit != s.Unit) {
					t.Fatalf("%s: ended after %q: %s is %v, in the whole output %v", c.name, c.text[max(0, end-60):end],
						s.Metric, s.Value, full.Value)
				}
			}
		}
	}
}

// The command may tell the number of requests; a command with several numbers does not.
func TestAskedByTheCommand(t *testing.T) {
	table := "============ Serving Benchmark Result ============\nSuccessful requests:    90        \n" +
		strings.Repeat("=", 50) + "\n"
	for command, want := range map[string]string{
		"vllm bench serve --num-prompts 90": "",
		"vllm bench serve --num-prompts=100 --seed 1": "90 of 100 requests succeeded (the " +
			"command asks for them)",
		"python3 -m sglang.bench_serving --num-prompt '100'": "90 of 100 requests succeeded (the " +
			"command asks for them)",
		"bench --num-prompts 10 >/dev/null; bench --num-prompts 100":      "",
		"bench --dataset-name generated-shared-prefix --num-prompts 100":  "",
		"vllm bench serve --num-prompts $N":                               "",
		"vllm bench serve --num-prompts 99999999999999999999999999999999": "",
		"vllm bench serve --num-prompts 100 --other-num-prompts-like-thing": "90 of 100 requests succeeded (the " +
			"command asks for them)",
	} {
		r := parse(t, "vllm", table, command)
		if got := r.Failure; (got == nil) != (want == "") || got != nil &&
			(got.Evidence != want || got.Class != "invalid" || got.Stage != "run") {
			t.Errorf("%s: %+v", command, got)
		}
	}
}

// Each execution reads the input as one of the formats.
func FuzzParse(f *testing.F) {
	read := []string{"vllm", "sglang", "auto"}
	for i := range read {
		for _, c := range outputs(f) {
			f.Add(uint8(i), []byte(c.text[:min(len(c.text), 4<<10)]))
			if c.document != "" {
				f.Add(uint8(i), []byte(c.document[:min(len(c.document), 4<<10)]))
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		format := read[int(which)%len(read)]
		p, err := formats.Lookup(format)
		if err != nil {
			t.Fatal(err)
		}
		fuzzing.Frugal(t, len(b), func() { err = metricstest.Check(t, p, b) })
		if err != nil && format != "auto" {
			t.Fatal(err)
		}
	})
}

// The value of a label is one whole number, or there is none and a warning tells the reason. No version prints any of
// the refused forms.
func TestValueOfALabel(t *testing.T) {
	table := "============ Serving Benchmark Result ============\nSuccessful requests:                     100\n" +
		"Total generated tokens:                  10000\n%s\n" + strings.Repeat("=", 50) + "\n"
	const label = "Output token throughput (tok/s): "
	for line, want := range map[string]string{
		label + "1037.28": "1037.28", label + "1,037.28": "1037.28", label + "    0.00": "0",
		label + "1.037,28": `"1.037,28" is not a number`, label + "1 037.28": `"1 037.28" is not a number`,
		label + "1'037.28": `"1'037.28" is not a number`, label + "1\u202f037.28": "is not a number",
		label + "1.04k": `"1.04k" is not a number`, label + "0x40D": `"0x40D" is not a number`,
		label + "10INFO hello\n37.28": `"10INFO" is not a number`, label + "N/A": `"N/A" is not a number`,
		label + "1,037": `"1,037" is not a number`, label + "-1037.28": "a rate is not negative",
		label + "inf":                            `"inf" is not finite`,
		"Output token throughput (ktok/s): 1.04": `the unit in "output token throughput (ktok/s)" is not known`,
		label + "10.00\n" + label + "inf":        "two results in one output",
		label + "inf\n" + label + "10.00":        "two results in one output",
	} {
		r := parse(t, "vllm", fmt.Sprintf(table, line), "")
		got := fmt.Sprint(r.Warnings)
		if r.Failure != nil {
			got += r.Failure.Evidence
		}
		if s, ok := metrics.Find(r.Samples, "output_token_throughput"); ok {
			got = fmt.Sprint(s.Value)
		}
		if !strings.Contains(got, want) || want[0] >= '0' && want[0] <= '9' && got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
	for text, want := range map[string]string{
		"Avg latency: 1,234 seconds\n":                      `"1,234" is not a number`,
		"SET: 90000.00 requests per second, p50=0,311 msec": `"0,311" is not a number`,
		"Throughput: 1.037,5 requests/s\n":                  `"1.037,5" is not a number`,
	} {
		format := "vllm"
		if strings.HasPrefix(text, "SET") {
			format = "redis"
		}
		p, err := formats.Lookup(format)
		if err != nil {
			t.Fatal(err)
		}
		if r := metricstest.Parse(t, p, text); !strings.Contains(fmt.Sprint(r.Warnings), want) {
			t.Errorf("%q: %v, want %s", text, r.Warnings, want)
		}
	}
}

// A server can make its client print a document within the server's name. Such a document does not replace the table.
func TestADocumentBesideATable(t *testing.T) {
	const table = "============ Serving Benchmark Result ============\nSuccessful requests:  24\n" +
		"Benchmark duration (s):  1.00\nRequest throughput (req/s):  24.00\n" +
		"Output token throughput (tok/s):  576.21\n==================================================\n"
	for name, tt := range map[string]struct{ before, after, want string }{
		"of the same run": {after: `{"completed": 24, "num_prompts": 24, "duration": 0.9964, ` +
			`"output_throughput": 576.2101}`},
		"of another run": {after: `{"completed": 24, "num_prompts": 24, "duration": 0.5, "output_throughput": 999.5}`,
			want: "benchmark_duration is 0.5"},
		"of another mode": {before: `First model name: {"elapsed_time": 1.0, "requests_per_second": 24.0,` +
			`"output_tokens_per_second": 1200}` + "\n",
			want: "a document of mode throughput beside a table of mode serving"},
	} {
		t.Run(name, func(t *testing.T) {
			r := parse(t, "vllm", tt.before+table+tt.after, "")
			switch {
			case tt.want == "":
				s, ok := metrics.Find(r.Samples, "output_token_throughput")
				if r.Failure != nil || !ok || s.Value != 576.2101 {
					t.Errorf("%+v, %+v", r.Failure, r.Samples)
				}
			case r.Failure == nil || r.Failure.Rule != invalid.Ambiguous ||
				!strings.Contains(r.Failure.Evidence, tt.want):
				t.Errorf("%+v", r.Failure)
			}
		})
	}
}

// A label and a value may stand in cells of a Markdown table.
func TestRowsOfMarkdown(t *testing.T) {
	r := parse(t, "auto", "| ============ Serving Benchmark Result ============ |\n| --- | --- |\n"+
		"| Successful requests | 90 |\n| Failed requests: | 0 |\n| **Request throughput (req/s)** | `2.50` |\n"+
		"| Mean TTFT (ms) | 12.50 | 99.00 |\n| ================================================== |\n", "")
	want := "format vllm-serving\nfailed_requests = 0 req\nrequest_throughput = 2.5 req/s\n" +
		"successful_requests = 90 req\n"
	if got := figures(r); got != want {
		t.Error(cmp.Diff(want, got))
	}
	other := "| Request throughput (req/s) | 2.50 |\n| Failed requests | 0 |\n" // of another tool, which has no header
	if r := parse(t, "auto", other, ""); r.Format != "" {
		t.Errorf("%+v", r)
	}
}

// Messages name the line or the run that is not understood.
func TestTheUnreadIsTold(t *testing.T) {
	const head, rule = "============ Serving Benchmark Result ============\n", "\n======\n"
	document := `{"completed": 1, "num_prompts": 1, "request_throughput": `
	for text, want := range map[string]string{
		head + "~~ Successful requests: 90\nRequest throughput (req/s): 2.50" + rule: "this line is not understood: " +
			`"~~ Successful requests: 90"`,
		document + "2}\n" + document + "3}\n": "request_throughput is 2 in one document and 3 in another",
		"Warmup ...\nPrefill. latency: 0.11988 s, throughput:    500.48 token/s\nTotal. latency:  0.355 s, " +
			"throughput:    258.89 token/s\nBenchmark ...\n": "the output ends after the warm-up",
	} {
		if r := parse(t, "auto", text, ""); r.Failure == nil || !strings.Contains(r.Failure.Evidence, want) {
			t.Errorf("%s: %+v", text, r.Failure)
		}
	}
}
