package document

import (
	"bytes"
	"encoding/json"

	"github.com/benchgraph/benchgraph/hclspec/recorded"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/stats"
)

// JSON writes report.json with the whole document. Totals counts all compares by outcome.
func JSON(p *Counted) (map[string][]byte, error) {
	document := struct {
		Format string `json:"format"`
		Title  string `json:"title"`
		Snapshot
		Universe    int                   `json:"universe"`
		Totals      map[stats.Outcome]int `json:"totals"`
		Compares    []stats.Totals        `json:"compares"`
		Commits     []Commit              `json:"commits"`
		Comparisons []stats.Comparison    `json:"comparisons"`
		Pairs       []stats.Comparison    `json:"pairs"` // patched candidates against the commit itself; in no total
		States      []State               `json:"states"`
		Available   []recorded.Count      `json:"availability"`
		GPUs        []DeviceCount         `json:"by_gpus"`
		Failures    []Failed              `json:"failures"`
		Causes      []FailureKind         `json:"failure_kinds"`
		Recoverable []Recovery            `json:"recoverable"`
		Skips       []Skip                `json:"skips"`
		Hardware    []string              `json:"hardware"`
		Cost        Cost                  `json:"cost"`
		Recorded    *Recorded             `json:"recorded"` // null: no results of other studies
		Samples     []Measurement         `json:"samples"`
		Diagnostics any                   `json:"diagnostics,omitempty"`
	}{
		Format, p.Title, p.Snapshot, p.Universe, p.Total.Counts, Present(p.Compares), Present(p.Commits),
		Present(p.Comparisons), Present(p.Pairs),
		Present(p.States), Present(Availability(p.States)), Present(ByDevices(p.States)),
		Present(p.Failures), Present(FailureKinds(p.Failures)), Present(Recoveries(p)), Present(p.Skips),
		Present(p.Hardware), p.Cost, recordedOf(p), Present(p.Measurements), p.Diagnostics,
	}
	text, err := Indented(document)
	return map[string][]byte{"report.json": text}, err
}

// Present returns an empty list for nil, so that readers can iterate over it.
func Present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Recorded is the JSON of the results of other studies.
type Recorded struct {
	Universe     int                `json:"universe"` // commits × variants
	States       []recorded.State   `json:"states"`
	ByState      []recorded.Count   `json:"by_state"`     // partition of the universe
	Availability []recorded.Count   `json:"availability"` // partition of the commits
	Counts       map[string]int     `json:"counts"`       // counts that claims are checked against
	Records      []recorded.Entry   `json:"records"`
	Refused      []recorded.Refusal `json:"refused"`
}

func recordedOf(p *Counted) *Recorded {
	b := p.Recorded
	if b == nil {
		return nil
	}
	return &Recorded{len(b.States), Present(b.States), Present(b.ByState()), Present(b.Availability()),
		b.Counts(), Present(b.Entries), Present(b.Refused)}
}

// Indented returns indented JSON.
func Indented(document any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return nil, err
	}
	return printable.JSON(out.Bytes()), nil
}
