package document

import (
	"fmt"
	"strings"

	"github.com/benchgraph/benchgraph/stats"
)

// Verdicts returns a sentence with the numbers of wins, losses, ties and open candidates.
func Verdicts(t stats.Totals) string {
	measured := t.Measured()
	switch {
	case measured == 0 && t.Identical > 0:
		return fmt.Sprintf("%d tie (identical artefact), and nothing was measured", t.Identical)
	case measured == 0:
		return "No candidate has a verdict"
	}
	wins, losses := t.Standing[stats.Win], t.Standing[stats.Loss]
	text := fmt.Sprintf("%d win (%.0f %% of the %d measured), %d loss, %d tie, %d inconclusive", wins,
		100*float64(wins)/float64(measured), measured, losses, t.Counts[stats.Tie]-t.Identical,
		t.Counts[stats.Inconclusive])
	if t.Doubtful > 0 {
		text += fmt.Sprintf(", and %d win or loss that may be a false one among so many (q above 0.05)", t.Doubtful)
	}
	return text
}

// Missing returns a text about the candidates without figures.
func Missing(t stats.Totals) string {
	var parts []string
	for _, o := range stats.Outcomes() {
		if n := t.Counts[o]; n > 0 && !o.Judged() {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	if t.Identical > 0 {
		parts = append(parts, fmt.Sprintf("%d tie (identical artefact)", t.Identical))
	}
	if len(parts) == 0 {
		return "none is missing"
	}
	return fmt.Sprintf("%d without: %s", t.Universe-t.Measured(), strings.Join(parts, ", "))
}

// IntervalTitle returns a title with the confidence, if all rows have the same.
func IntervalTitle(rows []stats.Comparison) string {
	if len(rows) == 0 {
		return "Interval"
	}
	for _, c := range rows {
		if c.Confidence == 0 || c.Confidence != rows[0].Confidence {
			return "Interval"
		}
	}
	return fmt.Sprintf("%.4g %% interval at the last look", 100*rows[0].Confidence)
}
