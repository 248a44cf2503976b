package stats

import (
	"fmt"

	"github.com/benchgraph/benchgraph/stats/inference"
	"gonum.org/v1/gonum/stat"
)

const (
	mostUnordered = 0.01 // p below which the order of the blocks is no chance
	fewestOrdered = 6    // blocks below which their order says nothing
)

// ordered returns caveats about differences, given in the order of their blocks, that depend on the time of
// measurement: a trend, by the t test of their correlation with time, or neighbours that are alike, by von Neumann's
// ratio. Intervals and p-values suppose that blocks are independent. freedom is the degrees of freedom of the
// differences' deviation.
func ordered(differences []float64, freedom float64) []Caveat {
	if len(differences) < fewestOrdered {
		return nil
	}
	if _, deviation := stat.MeanStdDev(differences, nil); deviation == 0 {
		return nil
	}
	if r, p := inference.Trend(differences, freedom-1); p < mostUnordered {
		return []Caveat{{CaveatOrder, fmt.Sprintf(
			"the difference %s from block to block (correlation with time %.2f, p = %.2g): the effect depends on "+
				"when it was measured, and the interval does not account for that",
			map[bool]string{true: "grows", false: "shrinks"}[r > 0], r, p)}}
	}
	if p := inference.Alike(differences); p < mostUnordered {
		return []Caveat{{CaveatOrder, fmt.Sprintf(
			"the differences of neighbouring blocks are alike (von Neumann's test: p = %.2g): %d blocks tell less "+
				"than the interval supposes; blocks further apart in time would tell more",
			p, len(differences))}}
	}
	return nil
}
