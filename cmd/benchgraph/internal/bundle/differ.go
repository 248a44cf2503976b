package bundle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
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
// report. Sentences may differ, since another version may word them in another way.
func RowDifferences(name string, has, judged []byte) ([]string, error) {
	said, err := rowsOf(has)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	now, err := rowsOf(judged)
	if err != nil {
		return nil, err
	}
	var reasons []string
	for i := range max(len(said.ids), len(now.ids)) {
		if i < len(said.ids) && now.rows[said.ids[i]] != said.rows[said.ids[i]] {
			id := said.ids[i]
			reasons = append(reasons, fmt.Sprintf("the row of %s is %s, and judged again it is %s", id, said.rows[id],
				cmp.Or(now.rows[id], "not there")))
		}
		if i < len(now.ids) && said.rows[now.ids[i]] == "" {
			id := now.ids[i]
			reasons = append(reasons, fmt.Sprintf("the row of %s is not there, and judged again it is %s", id,
				now.rows[id]))
		}
	}
	return reasons, nil
}

// rows are the rows of a report, each in one line.
type rows struct {
	ids  []string // in their order
	rows map[string]string
}

// rowsOf reads the rows of a report.
func rowsOf(text []byte) (*rows, error) {
	var document struct{ Comparisons []map[string]any }
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	all, seen := &rows{rows: map[string]string{}}, map[string]int{}
	for _, r := range document.Comparisons {
		id := fmt.Sprintf("%v %v %v against %v, %v", r["compare"], r["benchmark"], r["candidate"], r["against"],
			r["metric"])
		if seen[id]++; seen[id] > 1 {
			id = fmt.Sprintf("%s (%d)", id, seen[id])
		}
		all.ids, all.rows[id] = append(all.ids, id), figuresOf(r)
	}
	return all, nil
}

// figuresOf returns the outcome, the figures and the kinds of caveats of a row, in one line.
func figuresOf(row map[string]any) string {
	text := fmt.Sprint(row["outcome"])
	for _, name := range []string{"effect", "low", "high", "speedup", "confidence", "blocks", "p", "p_t", "q",
		"hodges_lehmann", "value", "against_value", "unit", "better", "tie", "first", "canary", "primary", "commit"} {
		switch value := row[name].(type) {
		case nil:
		case float64:
			if math.Abs(value) < 1e-12 { // processors round in their own ways
				value = 0
			}
			text += fmt.Sprintf(", %s %.9g", name, value)
		default:
			text += fmt.Sprintf(", %s %v", name, value)
		}
	}
	caveats, _ := row["caveats"].([]any)
	for _, c := range caveats {
		if c, ok := c.(map[string]any); ok {
			text += fmt.Sprintf(", caveat %v", c["kind"])
		}
	}
	return text
}
