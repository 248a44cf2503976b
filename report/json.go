package report

import (
	"bytes"
	"encoding/json"

	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/stats"
)

// renderJSON writes report.json: everything that the document holds. Totals counts all compares by outcome.
func renderJSON(p *prepared) (map[string][]byte, error) {
	document := struct {
		Format string `json:"format"`
		Title  string `json:"title"`
		Snapshot
		Universe    int                   `json:"universe"`
		Totals      map[stats.Outcome]int `json:"totals"`
		Compares    []stats.Totals        `json:"compares"`
		Comparisons []stats.Comparison    `json:"comparisons"`
		Failures    []Failure             `json:"failures"`
		Skips       []Skip                `json:"skips"`
		Hardware    []string              `json:"hardware"`
		Cost        Cost                  `json:"cost"`
		Samples     []Measurement         `json:"samples"`
	}{
		Format, p.Title, p.Snapshot, p.Universe, p.total.Counts, present(p.compares), present(p.Comparisons),
		present(p.Failures), present(p.Skips), present(p.Hardware), p.Cost, present(p.Measurements),
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return nil, err
	}
	return map[string][]byte{"report.json": printable.JSON(out.Bytes())}, nil
}

// present makes an empty list of a missing one, which a reader can iterate over.
func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
