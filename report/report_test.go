package report

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/stats/settle"
)

var update = flag.Bool("update", false, "write the golden files anew")

// campaign is a small report with every outcome in it, whose figures come from Judge.
func campaign() document.Document {
	random := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	doc := document.Document{
		Title: "vLLM campaign",
		Snapshot: document.Snapshot{ID: "9f3c2a7be10d", Time: start.Add(90 * time.Minute), Version: "0.1.0",
			Revision: "c0ffee0c0ffee"},
		Hardware: []string{"NVIDIA H100 80GB HBM3, driver 550, 2 × Xeon 8480",
			"NVIDIA H100 80GB HBM3, driver 550, 2 × Xeon 8480"},
		Cost: document.Cost{Attempts: 61, Lost: 4, Wall: 5*time.Hour + 30*time.Minute,
			GPUTime: 4*time.Hour + 15*time.Minute,
			LostGPU: 12 * time.Minute, Money: 16.79, PerBlock: 5 * time.Minute},
		Commits: []document.Commit{
			{Name: "22d33bac", Title: "[FrontEnd][Perf] `merge_async_iterators` fast-path (#15150)",
				Rev: "22d33baca2c0c639cfd45c48e99803e56c3efa74", Parent: "b0e96aaebbfbe8e70478e4192a5a13864ffdefa6",
				Model: "meta-llama/Llama-3.1-8B-Instruct"},
			{Name: "015069b0"}, {Name: "6ce01f30", Title: "[Performance] Optimize `get_seqs` (#7051)"},
			{Name: "0ec82edd"}, {Name: "fc7b8d1e"},
		},
	}
	attempt := func(address string, number, ready, from, to int, cpus int, failure string, devices ...string) {
		a := document.Attempt{Run: "20260304T050607.000-17", Address: address, Number: number,
			Ready: start.Add(time.Duration(ready) * time.Second), Start: start.Add(time.Duration(from) * time.Second),
			End: start.Add(time.Duration(to) * time.Second), CPUs: cpus, Devices: devices, State: document.AttemptDone}
		if failure != "" {
			a.State, a.Class, a.Message = document.AttemptFailed, "transient", failure
		}
		doc.Attempts = append(doc.Attempts, a)
	}
	attempt(`wheel.vllm["22d33bac/human"]`, 1, 0, 0, 90, 2, "")
	attempt(`fetch.model`, 1, 0, 0, 30, 0, "the server broke off")
	attempt(`fetch.model`, 2, 32, 32, 60, 0, "")
	attempt(`trial.serving["22d33bac#1"]`, 1, 90, 90, 240, 4, "", "GPU-1", "GPU-2")
	attempt(`trial.serving["015069b0#1"]`, 1, 60, 240, 400, 4, "", "GPU-1", "GPU-2")
	baseline := map[string]float64{} // one sample of it in each block, whatever is held against it
	measure := func(commit, variant, metric, unit, better string, block int, value float64) {
		order := 1 + (block+len(variant))%3
		doc.Measurements = append(doc.Measurements, document.Measurement{Benchmark: "serving", Commit: commit,
			Candidate: commit + "/" + variant, Block: block, Order: order,
			Metric: metric, Value: value, Unit: unit, Better: better,
			Start: start.Add(time.Duration(3*block+order) * time.Minute), Seed: 42,
			DeviceClass: "NVIDIA H100 80GB HBM3",
			Devices:     []string{"GPU-1"}})
	}
	judge := func(commit, variant, metric, unit, better string, effect, noise float64, blocks int) stats.Comparison {
		var pairs []stats.Pair
		for b := 1; b <= blocks; b++ {
			key := fmt.Sprint(commit, metric, b)
			if baseline[key] == 0 {
				baseline[key] = 2000 * math.Exp(0.01*random.NormFloat64())
				measure(commit, "baseline", metric, unit, better, b, baseline[key])
			}
			p := stats.Pair{Block: b,
				Candidate: baseline[key] * math.Exp(math.Log1p(effect)+noise*random.NormFloat64()),
				Against:   baseline[key]}
			measure(commit, variant, metric, unit, better, b, p.Candidate)
			pairs = append(pairs, p)
		}
		rule := stats.Rule{Better: better, Tie: stats.DefaultTie(metric), Looks: stats.Looks(7, 15)}
		return stats.Comparison{Verdict: stats.Judge(pairs, rule), Compare: "three_way", Benchmark: "serving",
			Commit: commit, Candidate: commit + "/" + variant,
			Against: commit + "/baseline", Metric: metric, Primary: true, Unit: unit,
			Methodology: strings.Repeat("ab", 32)}
	}
	rows := []stats.Comparison{
		judge("22d33bac", "human", "output_token_throughput", "tok/s", stats.Higher, 0.06, 0.01, 7),
		judge("22d33bac", "claude", "output_token_throughput", "tok/s", stats.Higher, 0, 0.002, 7),
		judge("015069b0", "human", "output_token_throughput", "tok/s", stats.Higher, -0.05, 0.01, 7),
		judge("6ce01f30", "human", "output_token_throughput", "tok/s", stats.Higher, 0.01, 0.06, 15),
		judge("6ce01f30", "claude", "output_token_throughput", "tok/s", stats.Higher, 0.01, 0.06, 7),
	}
	for i := range rows[3:] { // their commit's blocks are shorter than those of the others
		open := &rows[3+i]
		open.Settle = &settle.Estimate{Blocks: open.Needed - open.Blocks}
		open.Settle.Took = time.Duration(open.Settle.Blocks) * 4 * time.Minute
	}
	rows[0].Caveats = append(rows[0].Caveats, stats.Caveat{Kind: stats.CaveatFix,
		Text: "fix aimv2: edits vLLM's registration of one config"})
	ttft := judge("22d33bac", "human", "ttft_p99", "ms", stats.Lower, -0.3, 0.1, 7)
	ttft.Primary = false
	pair := rows[0] // without a q, and so without a note on it
	pair.Candidate, pair.Against, pair.Caveats = "22d33bac/human", "22d33bac/claude", nil
	doc.Pairs = []stats.Comparison{pair}
	rows = append(rows, ttft)
	for i, o := range stats.Outcomes() {
		if o.Judged() {
			continue
		}
		commit := []string{"0ec82edd", "fc7b8d1e"}[i%2]
		rows = append(rows, stats.Comparison{Compare: "three_way", Benchmark: "serving", Commit: commit,
			Candidate: commit + "/variant_" + string(o),
			Against:   commit + "/baseline", Metric: "output_token_throughput", Primary: true,
			Verdict: stats.Verdict{Outcome: o, Reason: "because of " + string(o)},
		})
	}
	doc.Comparisons = rows
	doc.Universe = len(rows) - 1
	for _, c := range doc.Commits {
		baseline := document.State{Benchmark: "serving", Commit: c.Name, Variant: "baseline",
			Candidate: c.Name + "/baseline", Baseline: true, GPUs: 1, State: document.Measured, Reason: "", Blocks: 7}
		if c.Name == "0ec82edd" {
			baseline.GPUs = 4
		}
		doc.States = append(doc.States, baseline)
		for _, row := range rows {
			if row.Commit == c.Name && row.Primary {
				s := document.State{Benchmark: "serving", Commit: c.Name, Variant: strings.TrimPrefix(row.Candidate,
					c.Name+"/"), Candidate: row.Candidate, Baseline: false, GPUs: baseline.GPUs,
					State:  string(row.Outcome),
					Reason: row.Reason, Blocks: row.Blocks}
				if row.Outcome.Judged() {
					s.State, s.Reason = document.Measured, ""
				}
				doc.States = append(doc.States, s)
			}
		}
	}
	doc.Failures = []document.Failed{
		{Address: "trial.serving[\"0ec82edd#1\"]", Commit: "0ec82edd", Candidate: "0ec82edd/variant_failed",
			Log: ".benchgraph/logs/01J1.log", Took: 90 * time.Second, Failure: failure.Failure{
				Class: failure.Permanent, Rule: "cuda_out_of_memory", Stage: "start",
				Message: "the server ended before it was ready", Remedy: "give it more devices",
				Evidence: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB | GPU 0"}},
		{Address: "wheel.vllm[\"0ec82edd/variant_build_failed\"]", Commit: "0ec82edd",
			Candidate: "0ec82edd/variant_build_failed", Log: ".benchgraph/logs/01J2.log", Failure: failure.Failure{
				Class: failure.Permanent, Stage: "build", Message: "exit status 1",
				Evidence: "\x1b[31merror:\x1b[0m <b>ninja</b> `failed`"}},
	}
	doc.Skips = []document.Skip{{Address: `benchmark.serving["fc7b8d1e/human"]`,
		Reason: "AMD-specific commit: needs an MI300"}}
	return doc
}

func TestGolden(t *testing.T) {
	for _, name := range Formats() {
		t.Run(name, func(t *testing.T) {
			files, err := Render(campaign(), name)
			if err != nil {
				t.Fatal(err)
			}
			for file, got := range files {
				golden := filepath.Join("testdata", "campaign", file)
				if *update {
					if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(golden, got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), string(got)); diff != "" {
					t.Errorf("%s differs from the golden file (-want +got); -update writes it anew:\n%s", file, diff)
				}
			}
		})
	}
}

// The order in which results arrive says nothing.
func TestOrderDoesNotMatter(t *testing.T) {
	shuffled := campaign()
	random := rand.New(rand.NewPCG(9, 9))
	random.Shuffle(len(shuffled.Comparisons), func(i, j int) {
		shuffled.Comparisons[i], shuffled.Comparisons[j] = shuffled.Comparisons[j], shuffled.Comparisons[i]
	})
	random.Shuffle(len(shuffled.Measurements), func(i, j int) {
		shuffled.Measurements[i], shuffled.Measurements[j] = shuffled.Measurements[j], shuffled.Measurements[i]
	})
	slices.Reverse(shuffled.Failures)
	for _, name := range Formats() {
		a, err := Render(campaign(), name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Render(shuffled, name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestRefusals(t *testing.T) {
	miscounted := campaign()
	miscounted.Universe++
	infinite := campaign()
	infinite.Measurements[3].Value = math.Inf(1)
	for _, doc := range []document.Document{miscounted, infinite} {
		for _, name := range Formats() {
			files, err := Render(doc, name)
			var refused *stats.RefusedError
			if !errors.As(err, &refused) || files != nil {
				t.Errorf("%s: got %d files and %v, want a refusal", name, len(files), err)
			}
		}
	}
	if _, err := Render(campaign(), "pdf"); err == nil || !strings.Contains(err.Error(), `"markdown"`) {
		t.Errorf("pdf: %v", err)
	}
}

func TestNothingDeclared(t *testing.T) {
	for _, name := range Formats() {
		files, err := Render(document.Document{}, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "markdown" && !strings.Contains(string(files["report.md"]), "Nothing was declared") {
			t.Errorf("%s", files["report.md"])
		}
	}
}

// The document of the command line's contract.
func TestJSONShape(t *testing.T) {
	files, err := Render(campaign(), "json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Format      string
		Snapshot    string
		Universe    int
		Comparisons []map[string]any
		Totals      map[string]int
	}
	if err := json.Unmarshal(files["report.json"], &document); err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, n := range document.Totals {
		sum += n
	}
	if document.Format != "1.0" || document.Snapshot != "9f3c2a7be10d" || document.Universe != sum {
		t.Errorf("format %q, snapshot %q, universe %d, totals %v", document.Format, document.Snapshot,
			document.Universe, document.Totals)
	}
	for _, c := range document.Comparisons {
		for _, field := range []string{"compare", "commit", "candidate", "against", "metric", "outcome", "effect",
			"low", "high", "blocks", "p", "methodology", "caveats"} {
			if _, ok := c[field]; !ok {
				t.Errorf("%v has no %s", c["candidate"], field)
			}
		}
		if _, list := c["caveats"].([]any); !list {
			t.Errorf("caveats of %v are no list", c["candidate"])
		}
	}
}

// Whatever the outcomes are, the sums that the Markdown prints are those of its rows.
func TestMarkdownTotals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var doc document.Document
		for i := range rapid.IntRange(1, 20).Draw(t, "n") {
			row := stats.Comparison{Compare: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "compare"), Commit: "c",
				Candidate: "c/" + string(rune('a'+i)), Primary: true,
				Verdict: stats.Verdict{Blocks: 7, P: 0.01,
					Outcome: rapid.SampledFrom(stats.Outcomes()).Draw(t, "outcome")},
			}
			if row.Outcome == stats.Tie && rapid.Bool().Draw(t, "identical") {
				row.Blocks, row.Caveats = 0, []stats.Caveat{{Kind: stats.CaveatIdentical}}
			}
			doc.Comparisons = append(doc.Comparisons, row)
		}
		doc.Universe = len(doc.Comparisons)
		files, err := Render(doc, "markdown")
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		text, _, _ := strings.Cut(string(files["report.md"]), "## What could be recovered")
		for _, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "|") && strings.Contains(line, "`c/") {
				rows++
			}
		}
		without := 0
		for _, part := range strings.Split(text, "### Without figures: ")[1:] {
			n := 0
			if _, err := fmt.Sscan(part, &n); err != nil {
				t.Fatal(err)
			}
			without += n
		}
		head := fmt.Sprintf("have figures; %d without:", without)
		if rows != doc.Universe || without > 0 && !strings.Contains(text, head) {
			t.Fatalf("%d rows of %d, and the sections give %q:\n%s", rows, doc.Universe, head, text)
		}
	})
}

// Unknown figures are left out: a zero would be a claim.
func TestMarkdownLeavesOutUnknownCost(t *testing.T) {
	doc := campaign()
	doc.Cost = document.Cost{}
	files, err := Render(doc, "markdown")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range files {
		if strings.Contains(string(text), "of work") || strings.Contains(string(text), "voided") {
			t.Errorf("a figure that nobody recorded:\n%s", text)
		}
	}
}

// Of several machines, the report says which benchmarks each of them measured.
func TestMachinesWithTheirBenchmarks(t *testing.T) {
	doc := document.Document{Title: "two machines", Hardware: []string{"A100", "H100"}}
	for _, m := range []document.Measurement{
		{Benchmark: "small", DeviceClass: "A100"}, {Benchmark: "large", DeviceClass: "H100"},
		{Benchmark: "wide", DeviceClass: "H100"}, {Benchmark: "large", DeviceClass: "H100"},
	} {
		m.Metric, m.Unit, m.Value, m.Block = "rate", "1/s", 1, 1
		doc.Measurements = append(doc.Measurements, m)
	}
	for _, name := range []string{"markdown", "html"} {
		files, err := Render(doc, name)
		if err != nil {
			t.Fatal(err)
		}
		for file, text := range files {
			for _, says := range []string{"A100: measured small", "H100: measured large, wide"} {
				if !strings.Contains(string(text), says) {
					t.Errorf("%s does not say %q", file, says)
				}
			}
		}
	}
}
