package page

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/stats"
)

// A label of the forest plot is whole, and ends before the plot begins.
func TestLabelsOfTheForestAreWhole(t *testing.T) {
	for _, candidate := range []string{"0ec82edd/variant_with_long_name", "最適化スケジューラ最適化/人"} {
		testLabel(t, candidate)
	}
}

func testLabel(t *testing.T, candidate string) {
	t.Helper()
	row := stats.Comparison{Candidate: candidate, Metric: "output_token_throughput",
		Verdict: stats.Verdict{Outcome: stats.Win, Effect: 0.05, Low: 0.04, High: 0.06}}
	label := sign(row.Outcome) + " " + row.Candidate + " " + row.Metric
	picture := string(forest([]stats.Comparison{row}, []string{"row"}))
	if !strings.Contains(picture, ">"+label+"</text>") {
		t.Errorf("no label %q in %s", label, picture)
	}
	grid := regexp.MustCompile(`<line x1="([0-9.]+)"[^>]* class="grid"`).FindStringSubmatch(picture)
	if left, err := strconv.ParseFloat(grid[1], 64); err != nil || left < 7*float64(printable.Cells(label)) {
		t.Errorf("the plot begins at %s, below a label of %d columns", grid[1], printable.Cells(label))
	}
}
