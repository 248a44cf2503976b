package findings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/stats"
)

// Beside adds caveats to the rows of found: whether another class of machine, whose findings are others, came to the
// same outcome, and its figures. Figures of the two classes are never mixed. A row gets no caveat if one of the two has
// no verdict, or if both were measured by the same class.
func Beside(found, others []Findings) {
	for i := range found {
		at := slices.IndexFunc(others, func(f Findings) bool { return f.Compare == found[i].Compare })
		if at < 0 {
			continue
		}
		for j := range found[i].Comparisons {
			row := &found[i].Comparisons[j]
			k := slices.IndexFunc(others[at].Comparisons, func(c stats.Comparison) bool {
				return c.Benchmark == row.Benchmark && c.Candidate == row.Candidate && c.Against == row.Against &&
					c.Metric == row.Metric && c.Primary == row.Primary
			})
			if k < 0 || !row.Outcome.Judged() {
				continue
			}
			own, theirs := found[i].hardware(row), others[at].hardware(row)
			if other := &others[at].Comparisons[k]; other.Outcome.Judged() && theirs != "" && theirs != own {
				caveat := stats.Caveat{Kind: stats.CaveatReplica, Text: replicaText(row, other, theirs)}
				if !slices.Contains(row.Caveats, caveat) { // two classes of one file may have the same blocks
					row.Caveats = append(slices.Clip(row.Caveats), caveat)
				}
			}
		}
	}
}

// hardware returns the class of machine that measured a row.
func (f *Findings) hardware(row *stats.Comparison) string {
	var all []string
	for _, m := range f.Measurements {
		if m.Benchmark == row.Benchmark && m.Candidate == row.Candidate {
			all = append(all, m.Hardware)
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "; ")
}

func replicaText(row, other *stats.Comparison, hardware string) string {
	verb := "replicated"
	if row.Outcome != other.Outcome {
		verb = "not replicated"
	}
	text := fmt.Sprintf("%s on %s: %s", verb, hardware, other.Outcome)
	if !other.NoRatio && other.Blocks > 0 {
		text += " " + other.EffectText()
		if interval := other.IntervalText(); interval != "" {
			text += " [" + strings.Replace(interval, " to ", ", ", 1) + "]"
		}
	}
	if other.Blocks == 1 {
		return text + " with 1 block"
	}
	return fmt.Sprintf("%s with %d blocks", text, other.Blocks)
}
