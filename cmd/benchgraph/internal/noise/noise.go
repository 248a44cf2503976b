// Package noise shows how small a difference can be seen, by a baseline that was measured against itself.
package noise

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// Document is the outcome of one metric of a baseline against itself, as JSON.
type Document struct {
	Benchmark string          `json:"benchmark"`
	Candidate string          `json:"candidate"` // the baseline
	Metric    string          `json:"metric"`
	Blocks    int             `json:"blocks"`
	Effect    *float64        `json:"effect"` // of the baseline against itself, relative; null: not known
	Low       *float64        `json:"low"`
	High      *float64        `json:"high"`
	P         *float64        `json:"p"`
	Deviation *float64        `json:"deviation"` // between blocks, relative
	Margin    float64         `json:"margin"`    // smaller differences are ties
	Sees      *float64        `json:"sees"`      // smallest effect that Blocks blocks show
	Table     []Row           `json:"table"`
	Reason    string          `json:"reason,omitempty"` // why nothing is known
	Caveats   []stats.Caveat  `json:"caveats"`
	Outcome   stats.Outcome   `json:"outcome"`
	Attempts  *stats.Attempts `json:"attempts"`
}

// Row is the smallest effect that a number of blocks shows.
type Row struct {
	Blocks int     `json:"blocks"`
	Sees   float64 `json:"sees"`
}

// Of returns the document for a row of a baseline against itself.
func Of(row *stats.Comparison) Document {
	d := Document{Benchmark: strings.TrimSuffix(row.Benchmark, " "+hclspec.Noise), Candidate: row.Against,
		Metric: row.Metric, Blocks: row.Blocks, Margin: row.Tie,
		Table: []Row{}, Caveats: []stats.Caveat{}, Outcome: row.Outcome, Attempts: row.Attempts}
	for _, c := range row.Caveats {
		if c.Kind != stats.CaveatIdentical { // identical sides are on purpose here
			d.Caveats = append(d.Caveats, c)
		}
	}
	deviation := row.Deviation()
	if row.Blocks < 2 || row.NoRatio {
		d.Reason = row.Reason
		return d
	}
	d.Effect, d.Low, d.High, d.P = &row.Effect, &row.Low, &row.High, &row.P
	if deviation == 0 {
		d.Reason = "both sides have the same number in every block: a number that never changes is no measurement"
		return d
	}
	sees := stats.Sees(deviation, row.Blocks, row.Confidence)
	d.Deviation, d.Sees = &deviation, &sees
	blocks := []int{4, 6, 7, 9, 11, 12, 15, 20, 30, row.Blocks}
	slices.Sort(blocks)
	for _, n := range slices.Compact(blocks) {
		d.Table = append(d.Table, Row{n, stats.Sees(deviation, n, row.Confidence)})
	}
	return d
}

// Write writes the document for people.
func (d Document) Write(w io.Writer, style view.Style) {
	fmt.Fprintf(w, "%s: %s against itself, %s, %s\n", style.Bold("benchmark."+view.Clean(d.Benchmark)),
		view.Clean(d.Candidate), view.Clean(d.Metric), view.Count(d.Blocks, "block"))
	if d.Effect != nil {
		fmt.Fprintf(w, "  difference %+.2f %% [%+.2f %%, %+.2f %%], p = %.3g\n", 100**d.Effect, 100**d.Low,
			100**d.High, *d.P)
		if *d.Low > 0 || *d.High < 0 {
			fmt.Fprintln(w,
				"  One in twenty intervals leaves out 0 by chance. If the next one does, too, the machine or the "+
					"benchmark favours a place or a name.")
		}
	}
	for _, c := range d.Caveats {
		fmt.Fprintf(w, "  %s\n", view.Clean(c.Text))
	}
	if d.Sees == nil {
		fmt.Fprintf(w, "  nothing is known: %s\n", view.Clean(d.Reason))
		return
	}
	table := [][]string{{"blocks", "sees"}}
	for _, row := range d.Table {
		table = append(table, []string{view.Number(row.Blocks), "≥ " + percent(row.Sees)})
	}
	view.Table(w, "  ", table)
	fmt.Fprintf(w,
		"  In four of five cases, judged once at 95 %% confidence, by the noise of these blocks (%s from block to "+
			"block).\n", percent(*d.Deviation))
	if *d.Sees < d.Margin {
		fmt.Fprintf(w, "  A verdict wants at least the margin, %s.\n", percent(d.Margin))
	}
	fmt.Fprintf(w, "%s\n", style.Bold(fmt.Sprintf("benchmark.%s sees ≥ %s with %s",
		view.Clean(d.Benchmark), percent(*d.Sees), view.Count(d.Blocks, "block"))))
}

// percent returns a share for people, with two significant digits.
func percent(share float64) string {
	hundredths := 100 * share
	switch {
	case hundredths >= 10:
		return fmt.Sprintf("%.0f %%", hundredths)
	case hundredths >= 1:
		return fmt.Sprintf("%.1f %%", hundredths)
	}
	return fmt.Sprintf("%.2g %%", hundredths)
}
