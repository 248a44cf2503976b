package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const (
	mostUnordered = 0.01 // p below which the order of the blocks is no chance
	fewestOrdered = 6    // blocks below which their order says nothing
)

// ordered are the caveats of differences that depend on when they were measured, given in the order of their blocks: a
// trend, by the t test of their correlation with time, or neighbours that are alike, by von Neumann's ratio. Intervals
// and p-values suppose blocks that know nothing of each other. freedom is that of their deviation.
func ordered(differences []float64, freedom float64) []Caveat {
	n := float64(len(differences))
	if len(differences) < fewestOrdered {
		return nil
	}
	times := make([]float64, len(differences))
	for i := range times {
		times[i] = float64(i)
	}
	_, deviation := stat.MeanStdDev(differences, nil)
	if deviation == 0 {
		return nil
	}
	if r := stat.Correlation(times, differences, nil); pOfCorrelation(r, freedom-1) < mostUnordered {
		return []Caveat{{CaveatOrder, fmt.Sprintf(
			"the difference %s from block to block (correlation with time %.2f, p = %.2g): the effect depends on "+
				"when it was measured, and the interval does not know that",
			map[bool]string{true: "grows", false: "shrinks"}[r > 0], r, pOfCorrelation(r, freedom-1))}}
	}
	// The mean square of successive differences over the variance is 2 where blocks are independent; Young's normal
	// approximation.
	var steps float64
	for i := 1; i < len(differences); i++ {
		steps += (differences[i] - differences[i-1]) * (differences[i] - differences[i-1])
	}
	alike := 1 - steps/(2*(n-1)*deviation*deviation)
	z := alike / math.Sqrt((n-2)/(n*n-1))
	if p := distuv.UnitNormal.CDF(-z); p < mostUnordered {
		return []Caveat{{CaveatOrder, fmt.Sprintf(
			"the differences of neighbouring blocks are alike (von Neumann's test: p = %.2g): there is less in %d "+
				"blocks than the interval supposes; blocks that lie further apart would say more",
			p, len(differences))}}
	}
	return nil
}

// pOfCorrelation is the two-sided p of a correlation.
func pOfCorrelation(r, freedom float64) float64 {
	if math.Abs(r) >= 1 {
		return 0
	}
	t := math.Abs(r) * math.Sqrt(freedom/(1-r*r))
	return 2 * distuv.StudentsT{Sigma: 1, Nu: freedom}.CDF(-t)
}
