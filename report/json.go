package report

import "github.com/benchgraph/benchgraph/stats"

// renderJSON writes report.json: everything that the document holds. Totals counts all compares by outcome.
func renderJSON(p *prepared) (map[string][]byte, error) {
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
		Available   []count               `json:"availability"`
		GPUs        []deviceCount         `json:"by_gpus"`
		Failures    []Failed              `json:"failures"`
		Causes      []kindOfFailure       `json:"failure_kinds"`
		Recoverable []recovery            `json:"recoverable"`
		Skips       []Skip                `json:"skips"`
		Hardware    []string              `json:"hardware"`
		Cost        Cost                  `json:"cost"`
		Recorded    *recordedDocument     `json:"recorded"` // null: the report names no results of other studies
		Samples     []Measurement         `json:"samples"`
	}{
		Format, p.Title, p.Snapshot, p.Universe, p.total.Counts, present(p.compares), present(p.Commits),
		present(p.Comparisons), present(p.Pairs),
		present(p.States), present(availability(p.States)), present(byDevices(p.States)),
		present(p.Failures), present(kindsOfFailures(p.Failures)), present(recoveries(p)), present(p.Skips),
		present(p.Hardware), p.Cost, recordedOf(p), present(p.Measurements),
	}
	text, err := indented(document)
	return map[string][]byte{"report.json": text}, err
}

// present makes an empty list of a missing one, which a reader can iterate over.
func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
