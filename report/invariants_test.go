package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec/recorded"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
)

// results draws what became of a few commits in two benchmarks, with a history of failures.
func results(t *rapid.T) document.Document {
	doc := document.Document{Title: "drawn", Snapshot: document.Snapshot{ID: "drawn", Version: "0.1.0"}}
	draw := func(name string, most int) int { return rapid.IntRange(0, most).Draw(t, name) }
	for i := range 1 + draw("commits", 4) {
		commit := fmt.Sprintf("commit%d", i)
		doc.Commits = append(doc.Commits, document.Commit{Name: commit, Title: "Title of " + commit})
		for _, bench := range []string{"latency", "throughput"}[:1+draw("benchmarks", 1)] {
			state := rapid.SampledFrom([]string{document.Measured, "failed", "build_failed"}).Draw(t, "baseline")
			doc.States = append(doc.States, document.State{Benchmark: bench, Commit: commit, Variant: "base",
				Candidate: commit + "/base", Baseline: true, GPUs: draw("gpus", 2), State: state,
				Reason: "", Blocks: draw("blocks", 7)})
			for _, name := range []string{"human", "agent"} {
				row := stats.Comparison{Compare: "c", Benchmark: bench, Commit: commit, Candidate: commit + "/" + name,
					Against: commit + "/base", Metric: "m",
					Primary: true,
					Verdict: stats.Verdict{Reason: "because",
						Outcome: rapid.SampledFrom(stats.Outcomes()).Draw(t, "outcome")}}
				own := document.State{Benchmark: bench, Commit: commit, Variant: name, Candidate: row.Candidate,
					Baseline: false, GPUs: 1, State: string(row.Outcome), Reason: "because", Blocks: 0}
				if row.Outcome.Judged() {
					row.Blocks, row.Effect, row.Low, row.High, row.P = 7, 0.03, 0.01, 0.05, 0.01
					own.State, own.Blocks = document.Measured, 7
				}
				doc.Comparisons, doc.States = append(doc.Comparisons, row), append(doc.States, own)
				if draw("fails", 2) == 0 {
					doc.Failures = append(doc.Failures, document.Failed{Address: "trial." + bench, Commit: commit,
						Candidate: row.Candidate, Took: time.Duration(draw("took", 3)) * time.Second,
						Failure: failure.Failure{Message: "it failed",
							Class: rapid.SampledFrom([]failure.Class{failure.Transient, failure.Permanent,
								failure.Fixable, failure.Infra}).Draw(t, "class"),
							Rule: rapid.SampledFrom([]string{"", "cuda_out_of_memory", "boiler"}).Draw(t, "rule")}})
				}
			}
		}
	}
	doc.Universe = len(doc.Comparisons)
	if draw("recorded cost", 1) == 1 {
		doc.Cost = document.Cost{Attempts: 3, Lost: 1, Wall: time.Hour, GPUTime: time.Minute, PerBlock: time.Minute}
	}
	return doc
}

// read is report.json as a program reads it.
type read struct {
	Snapshot     string
	Universe     int
	Totals       map[string]int
	Availability []recorded.Count
	ByGPUs       []document.DeviceCount `json:"by_gpus"`
	States       []document.State
	Comparisons  []map[string]any
	Failures     []map[string]any
	Kinds        []document.FailureKind `json:"failure_kinds"`
	Recoverable  []document.Recovery
	Cost         map[string]any
}

// shares matches every share of Markdown, and named those that name both sets.
var (
	shares = regexp.MustCompile(`\([0-9]+ %`)
	named  = regexp.MustCompile(`[0-9]+ of [0-9]+ [^()|\n]*\([0-9]+ %\)|\([0-9]+ % of the [0-9]+ [a-z]+\)`)
)

// TestInvariants checks over random results what must hold of every report. The numbers are those of the invariants in
// docs/statistics.md; findings and hclspec/recorded have the tests of the others.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := results(t)
		files, err := Render(doc, "json")
		if err != nil {
			t.Fatal(err)
		}
		var r read
		if err := json.Unmarshal(files["report.json"], &r); err != nil {
			t.Fatal(err)
		}
		checkSums(t, doc, r)
		checkRows(t, doc, r)
		markdown, err := Render(doc, "markdown")
		if err != nil {
			t.Fatal(err)
		}
		text := string(markdown["report.md"])
		if a, b := len(shares.FindAllString(text, -1)), len(named.FindAllString(text, -1)); a != b { // I15
			t.Fatalf("%d of %d shares name both sets:\n%s", b, a, text)
		}
		if !strings.Contains(text, "Snapshot `drawn`") || r.Snapshot != "drawn" { // I9
			t.Fatal("the report names no snapshot")
		}
		checkRefusals(t, doc)
	})
}

// checkSums checks that all partitions are of the universe (I1, I3).
func checkSums(t *rapid.T, doc document.Document, r read) {
	total := 0
	for o, n := range r.Totals {
		total += n
		rows := 0
		for _, c := range doc.Comparisons {
			if string(c.Outcome) == o {
				rows++
			}
		}
		if rows != n { // I12, I17: each outcome is counted for itself
			t.Fatalf("%d %s, and %d rows", n, o, rows)
		}
	}
	available, of := 0, 0
	for _, c := range r.Availability {
		available, of = available+c.Count, c.Of
	}
	declared := 0
	for _, d := range r.ByGPUs {
		declared += d.Of
	}
	failures := 0
	for _, k := range r.Kinds {
		failures += k.Count
	}
	open := 0
	for _, x := range r.Recoverable {
		open += x.Rows
	}
	unsettled := r.Universe - r.Totals["win"] - r.Totals["loss"] - r.Totals["tie"]
	if total != r.Universe || r.Universe != len(doc.Comparisons) || available != of || declared != len(doc.States) ||
		failures != len(doc.Failures) || open != unsettled {
		t.Fatalf("universe %d, totals %d; available %d of %d; by GPUs %d of %d; failures %d of %d; open %d of %d",
			r.Universe, total, available, of, declared, len(doc.States), failures, len(doc.Failures), open, unsettled)
	}
}

// checkRows checks that what is not known is null, and never zero.
func checkRows(t *rapid.T, doc document.Document, r read) {
	for _, c := range r.Comparisons {
		judged := stats.Outcome(c["outcome"].(string)).Judged()
		if (c["effect"] == nil) == judged || (c["p"] == nil) == judged { // I6, I11
			t.Fatalf("outcome and figures do not fit: %v", c)
		}
	}
	sorted := prepareOrFail(t, doc).Failures
	for i, f := range r.Failures {
		own := sorted[i]
		if (f["rule"] == nil) != (own.Rule == "") || (f["cost_s"] == nil) != (own.Took == 0) { // I7, I16
			t.Fatalf("%v of %+v", f, own)
		}
	}
	for _, x := range r.Recoverable {
		if x.Cost != nil && !x.Estimated { // I16
			t.Fatalf("a cost that is no estimate: %+v", x)
		}
	}
	if known := doc.Cost.Attempts > 0; (r.Cost["gpu_hours"] != nil) != known || r.Cost["money"] != nil ||
		r.Cost["from"] != "records" {
		t.Fatalf("cost %v", r.Cost)
	}
}

func prepareOrFail(t *rapid.T, doc document.Document) *document.Counted {
	p, err := document.Check(doc)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// checkRefusals checks that no report is written of what does not add up (I2, I3, I11).
func checkRefusals(t *rapid.T, doc document.Document) {
	spoil := map[string]func(*document.Document){
		"a row too few":        func(d *document.Document) { d.Comparisons = d.Comparisons[1:] },
		"a second outcome":     func(d *document.Document) { d.Comparisons = append(d.Comparisons, d.Comparisons[0]) },
		"a universe too large": func(d *document.Document) { d.Universe++ },
		"no such outcome":      func(d *document.Document) { d.Comparisons[0].Outcome = "usable" },
		"a tie of nothing": func(d *document.Document) {
			d.Comparisons[0].Outcome,
				d.Comparisons[0].Blocks = stats.Tie, 0
		},
	}
	for name, change := range spoil {
		spoilt := doc
		spoilt.Comparisons = slices.Clone(doc.Comparisons)
		change(&spoilt)
		for _, format := range Formats() {
			files, err := Render(spoilt, format)
			var refused *stats.RefusedError
			if !errors.As(err, &refused) || files != nil {
				t.Fatalf("%s: %s gave %d files and %v", name, format, len(files), err)
			}
		}
	}
}
