package bundle

import (
	"encoding/json"
	"fmt"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
)

// FirstDifference returns the number of the first line in which two files differ; lines count from 1.
func FirstDifference(a, b []byte) int {
	line := 1
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			break
		}
		if a[i] == '\n' {
			line++
		}
	}
	return line
}

// RowDifferences returns the differences between the rows of two reports, one a line. name is that of the bundle's
// report.
func RowDifferences(name string, has, judged []byte) ([]string, error) {
	type document struct {
		Comparisons []json.RawMessage `json:"comparisons"`
	}
	var one, other document
	if err := json.Unmarshal(has, &one); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := json.Unmarshal(judged, &other); err != nil {
		return nil, err
	}
	var reasons []string
	for i := range max(len(one.Comparisons), len(other.Comparisons)) {
		said, is := rowAt(one.Comparisons, i), rowAt(other.Comparisons, i)
		if said != is {
			reasons = append(reasons, fmt.Sprintf("row %d of the report is %s, and judged again it is %s", i+1, said,
				is))
		}
	}
	return reasons, nil
}

// rowAt returns a row of a report in one line.
func rowAt(rows []json.RawMessage, i int) string {
	if i >= len(rows) {
		return "not there"
	}
	var row struct {
		Compare, Benchmark, Candidate, Metric, Outcome string
		Effect, Low, High, P                           *float64
		Blocks                                         int
	}
	if err := json.Unmarshal(rows[i], &row); err != nil {
		return "no row"
	}
	text := fmt.Sprintf("%s %s %s: %s", row.Compare, row.Candidate, row.Metric, row.Outcome)
	if row.Effect != nil {
		text += fmt.Sprintf(", effect %.9g", *row.Effect)
	}
	if row.Low != nil && row.High != nil {
		text += fmt.Sprintf(" [%.9g, %.9g]", *row.Low, *row.High)
	}
	if row.P != nil {
		text += fmt.Sprintf(", p %.9g", *row.P)
	}
	return fmt.Sprintf("%s, %s", text, view.Count(row.Blocks, "block"))
}
