package view

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/stats"
)

// Verdicts prints a table for each compare, with its totals. On a terminal, remarks that do not fit into a row are
// below it.
func Verdicts(w io.Writer, s Style, rows []stats.Comparison) {
	ledger := stats.Ledger{Rows: rows}
	for _, totals := range ledger.Totals() {
		fmt.Fprintf(w, "%s: %s\n", s.Bold("compare."+Clean(totals.Compare)), TotalsText(totals))
		table := [][]string{{"commit", "candidate", "benchmark", "metric", "better", "value", "effect", "outcome"}}
		notes, last := []string{""}, ""
		benchmarks, values := map[string]bool{}, false
		for _, row := range rows {
			if row.Compare == totals.Compare && row.Primary {
				benchmarks[row.Benchmark] = true
				values = values || Values(row) != "-"
				table = append(table, []string{row.Commit, strings.TrimPrefix(row.Candidate, row.Commit+"/"),
					row.Benchmark, row.Metric, Direction(row), Values(row), Effect(row), string(row.Outcome)})
				note, before := remarks(row), last
				if last = note; note == before && note != "" {
					note = " (as above)"
				}
				notes = append(notes, note)
			}
		}
		delete(benchmarks, "") // candidates without a benchmark
		if len(benchmarks) < 2 {
			without(table, "benchmark") // it would be the same in every row
		}
		if !values {
			without(table, "value")
		}
		s.fit(table, notes)
		s.tableWithNotes(w, "  ", table, notes)
	}
}

// without removes a column from a table.
func without(table [][]string, name string) {
	column := slices.Index(table[0], name)
	for i, row := range table {
		table[i] = slices.Delete(row, column, column+1)
	}
}

// fit makes a table of verdicts as narrow as the terminal, if possible: directions keep only their arrow, and cells
// and intervals move into the notes.
func (s Style) fit(table [][]string, notes []string) {
	moved := make([][]string, len(table))
	for _, name := range []string{"better", "value", "effect", "metric", "benchmark"} {
		column := slices.Index(table[0], name)
		if s.Columns == 0 || column < 0 || s.tableWidth(table) <= s.Columns {
			continue
		}
		for i, row := range table[1:] {
			cell, stays := row[column], ""
			switch name {
			case "better":
				stays, _, _ = strings.Cut(cell, " ")
				cell = ""
			case "effect":
				stays, _, _ = strings.Cut(cell, " [")
				cell = strings.TrimSpace(cell[len(stays):])
			}
			if row[column] = stays; cell != "" && cell != "-" {
				moved[i+1] = append(moved[i+1], cell)
			}
		}
		switch name {
		case "better":
			table[0][column] = ""
		case "effect":
		default:
			without(table, name)
		}
	}
	for i, cells := range moved {
		if len(cells) > 0 {
			notes[i] = strings.TrimSuffix(": "+strings.Join(cells, "; ")+"; "+strings.TrimLeft(notes[i], ": "), "; ")
		}
	}
}

// Values returns the values of both sides of a row: 105 → 115 items/s.
func Values(row stats.Comparison) string {
	if row.Blocks == 0 {
		return "-"
	}
	return strings.TrimSpace(Amount(row.AgainstValue) + " → " + Amount(row.Value) + " " + row.Unit)
}

// Amount returns a value with four significant digits, or rounded to a whole number if it is larger.
func Amount(v float64) string {
	if a := math.Abs(v); a >= 1000 && a < 1e12 {
		return Number(int(math.Round(v)))
	}
	return fmt.Sprintf("%.4g", v)
}

// Outcome returns the outcome of a row with its remarks.
func Outcome(row stats.Comparison) string { return string(row.Outcome) + remarks(row) }

// remarks returns text after the outcome: the reason for a missing verdict, or caveats and the number of blocks that
// would settle it.
func remarks(row stats.Comparison) (text string) {
	open := row.OpenText()
	if open != "" {
		text += ": " + open
	}
	told := func(c stats.Caveat) bool { return c.Text == row.Reason }
	unsettled := row.Outcome == stats.Inconclusive && open == "" && !slices.ContainsFunc(row.Caveats, told)
	if row.Reason != "" && (unsettled || !row.Outcome.Judged()) {
		text += ": " + Clean(row.Reason)
	}
	var texts []string
	if row.Doubtful() {
		texts = append(texts, "may be false: q = "+Probability(row.Q))
	}
	for _, c := range row.Caveats {
		texts = append(texts, c.Text)
	}
	if len(texts) > 0 && row.Outcome.Judged() {
		text += " (" + Clean(strings.Join(texts, "; ")) + ")"
	}
	return text
}

// leastShown is the smallest p-value that is printed: smaller ones differ only by rounding.
const leastShown = 1e-12

// Probability returns a p-value with two digits.
func Probability(p float64) string {
	if p < leastShown {
		return fmt.Sprintf("<%g", leastShown)
	}
	return fmt.Sprintf("%.2g", p)
}

// TestP returns the p-value of a row for a column p_t, with its name if it is another test.
func TestP(row stats.Comparison) string {
	name, p := row.TestP()
	if name == "p_t" {
		return Probability(p)
	}
	return name + " " + Probability(p)
}

// Grounds prints the figures on which the outcome of each row is based.
func Grounds(w io.Writer, rows []stats.Comparison) {
	for _, row := range rows {
		fmt.Fprintf(w, "  %s against %s, %s: %s\n", Clean(row.Candidate), Clean(row.Against),
			Clean(strings.TrimSpace(row.Benchmark+" "+row.Metric)), row.Outcome)
		line := func(format string, args ...any) { fmt.Fprintf(w, "    %s\n", Clean(fmt.Sprintf(format, args...))) }
		if row.Reason != "" {
			line("%s", row.Reason)
		}
		if row.Blocks > 0 {
			text := fmt.Sprintf("%s, from %s", Effect(row), Count(row.Blocks, "block"))
			if row.Look > 0 && len(row.Looks) > 1 {
				text += fmt.Sprintf(", look %d of %d", row.Look, len(row.Looks))
			}
			switch name, p := row.TestP(); {
			case p >= leastShown:
				text += "; " + name + " = " + Probability(p)
			case p > 0:
				text += fmt.Sprintf("; %s < %g", name, leastShown)
			}
			if row.Tie > 0 && !row.NoRatio {
				text += fmt.Sprintf("; a difference below %.3g %% counts as none", 100*row.Tie)
			}
			line("%s", text)
		}
		if open := row.OpenText(); open != "" {
			line("%s", open)
		}
		if a := row.Attempts; a != nil && a.Voided+a.Replaced+len(a.Causes) > 0 {
			line("attempts: %s", a.Text())
		}
		told := func(c stats.Caveat) bool { return c.Text == row.Reason }
		for _, c := range slices.DeleteFunc(slices.Clone(row.Caveats), told) {
			line("caveat %s: %s", c.Kind, c.Text)
		}
	}
}

// Effect returns an effect with its interval: +5.20 % [+4.10 %, +6.30 %].
func Effect(row stats.Comparison) string {
	text := row.EffectText()
	if interval := row.IntervalText(); interval != "" {
		text += " [" + strings.Replace(interval, " to ", ", ", 1) + "]"
	}
	return text
}

// Direction returns the direction in which the metric of a row is better: "↑ higher".
func Direction(row stats.Comparison) string {
	text := row.DirectionText()
	if row.Blocks == 0 || text == "" {
		return "-"
	}
	return strings.TrimSuffix(text, " is better")
}

// TotalsText returns the sum of outcomes, in a form that can be checked: 6 candidates = 2 win + 4 tie.
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
	if t.Doubtful > 0 {
		text += fmt.Sprintf(" (%d win or loss may be false: q above %g)", t.Doubtful, stats.Headline)
	}
	return text
}

// TerseVerdicts prints a line for each primary row: outcome, candidate, benchmark, metric, figures and remarks.
func TerseVerdicts(w io.Writer, rows []stats.Comparison) {
	for _, row := range rows {
		if !row.Primary {
			continue
		}
		fields := []string{string(row.Outcome), row.Candidate, row.Benchmark, row.Metric}
		if row.Blocks > 0 {
			fields = append(fields, Effect(row), Values(row), fmt.Sprintf("%d blocks", row.Blocks))
		}
		var present []string
		for _, f := range fields {
			if f = Clean(f); f != "" {
				present = append(present, f)
			}
		}
		fmt.Fprintln(w, strings.Join(present, " ")+remarks(row))
	}
}
