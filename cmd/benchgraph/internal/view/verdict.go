package view

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/stats"
)

// Verdicts writes what compares found: a table for each, with its sum.
func Verdicts(w io.Writer, s Style, rows []stats.Comparison, all bool) {
	ledger := stats.Ledger{Rows: rows}
	for _, totals := range ledger.Totals() {
		fmt.Fprintf(w, "%s: %s\n", s.Bold("compare."+Clean(totals.Compare)), TotalsText(totals))
		table := [][]string{{"commit", "candidate", "benchmark", "metric", "better", "effect", "outcome"}}
		benchmarks := map[string]bool{}
		for _, row := range rows {
			if row.Compare == totals.Compare && (row.Primary || all) {
				benchmarks[row.Benchmark] = true
				table = append(table, []string{Clean(row.Commit), Clean(variant(row)), Clean(row.Benchmark), Clean(row.Metric), Direction(row), Effect(row), Outcome(row)})
			}
		}
		delete(benchmarks, "") // of a candidate that no benchmark measures
		if len(benchmarks) < 2 {
			for i, row := range table {
				table[i] = slices.Delete(row, 2, 3) // it would say the same in every line
			}
		}
		Table(w, "  ", table)
	}
}

// variant is a candidate without its commit, which has a column of its own.
func variant(row stats.Comparison) string {
	return strings.TrimPrefix(row.Candidate, row.Commit+"/")
}

// Outcome is an outcome with why there is no verdict, or with what would settle it and the caveats that its figure carries.
func Outcome(row stats.Comparison) string {
	text := string(row.Outcome)
	if open := row.OpenText(); open != "" {
		text += ": " + open
	}
	if row.Reason != "" && !row.Outcome.Judged() {
		text += ": " + Clean(row.Reason)
	}
	if len(row.Caveats) > 0 && row.Outcome.Judged() {
		texts := make([]string, len(row.Caveats))
		for i, c := range row.Caveats {
			texts[i] = c.Text
		}
		text += " (" + Clean(strings.Join(texts, "; ")) + ")"
	}
	return text
}

// Effect is an effect with its interval: +5.20 % [+4.10 %, +6.30 %].
func Effect(row stats.Comparison) string {
	text := row.EffectText()
	if interval := row.IntervalText(); interval != "" {
		text += " [" + strings.Replace(interval, " to ", ", ", 1) + "]"
	}
	return text
}

// Direction is which way the metric of a row is better: "↑ higher".
func Direction(row stats.Comparison) string {
	text := row.DirectionText()
	if row.Blocks == 0 || text == "" {
		return "-"
	}
	return strings.TrimSuffix(text, " is better")
}

// TotalsText is the sum of outcomes, in which every number can be checked: 6 candidates = 2 win + 4 tie.
func TotalsText(t stats.Totals) string {
	var parts []string
	for _, o := range stats.Outcomes() {
		if n := t.Counts[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	text := Count(t.Universe, "candidate")
	if len(parts) > 0 {
		text += " = " + strings.Join(parts, " + ")
	}
	return text
}
