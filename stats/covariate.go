package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
)

const (
	byChance          = 0.002 // p from which on a difference between the first position of a block and the others may be chance
	fewestForPosition = 6     // blocks below which a further parameter costs more than it saves
	fewestFirst       = 2     // blocks in which each side must be first: one block alone would be left out in effect, like an outlier
)

// positioned is differences without what being first in a block does to a sample.
type positioned struct {
	differences []float64
	estimate    estimate
	first       float64 // what was removed, on the log scale: how much better whatever ran first in its block was
	p           float64 // of the t test of it
}

// withoutPosition removes from differences, oriented so that positive is better, the effect of running first in a block. lead is 1
// where the candidate did, -1 where the other side did, and 0 where neither did.
//
// Least squares fit difference = effect + first*lead, which takes a degree of freedom. Orders are balanced over blocks, so that the
// effect stays where it was, and the interval loses the width that the position gave it. The fit is used where its t test says with
// p < 0.002 that the position matters; a test at a common level would let a machine without such an effect pass it often enough
// to narrow intervals that are right. The error rates with this threshold are those without any adjustment.
func withoutPosition(differences []float64, lead []float64) (positioned, bool) {
	n := float64(len(differences))
	var own, other int
	for _, l := range lead {
		switch {
		case l > 0:
			own++
		case l < 0:
			other++
		}
	}
	if len(differences) < fewestForPosition || own < fewestFirst || other < fewestFirst {
		return positioned{}, false
	}
	mean, middle := stat.Mean(differences, nil), stat.Mean(lead, nil)
	var spread, common float64
	for i, d := range differences {
		spread += (lead[i] - middle) * (lead[i] - middle)
		common += (lead[i] - middle) * (d - mean)
	}
	r := positioned{first: common / spread, differences: make([]float64, len(differences))}
	var rest float64
	for i, d := range differences {
		r.differences[i] = d - r.first*lead[i]
		e := d - mean - r.first*(lead[i]-middle)
		rest += e * e
	}
	freedom := n - 2
	deviation := math.Sqrt(rest / freedom)
	r.estimate = estimate{stat.Mean(r.differences, nil), deviation * math.Sqrt(1/n+middle*middle/spread), freedom}
	r.p = estimate{r.first, deviation / math.Sqrt(spread), freedom}.p()
	return r, r.p < byChance && math.Abs(r.first) > toleranceOfMargin
}

// caveat says in a row what was removed from its figures.
func (r *positioned) caveat() Caveat {
	return Caveat{CaveatPosition, fmt.Sprintf("whatever ran first in a block was %s (p = %.2g), which effect, interval and p do not contain: a warm-up may make all positions equal",
		sided(relative(r.first)), r.p)}
}

// sided writes a relative effect with its direction.
func sided(effect float64) string {
	if effect < 0 {
		return plain(-effect) + " worse"
	}
	return plain(effect) + " better"
}
