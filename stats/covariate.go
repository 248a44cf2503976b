package stats

import (
	"fmt"
	"math"
	"slices"

	"github.com/benchgraph/benchgraph/stats/inference"
	"gonum.org/v1/gonum/stat"
)

const (
	byChance           = 0.002 // p from which on the effect of a covariate may be chance
	fewestForCovariate = 6     // blocks below which a further parameter costs more than it saves
	moreForAnother     = 2     // further blocks that a second covariate needs
	// blocks in which each side must be first: a single such block would lose its influence, like a removed outlier
	fewestFirst = 2
	mostOfOne   = 0.5 // largest share of one block in the variance of the canary's ratios, for the same reason
)

// covariate is a known property of each block, and its estimated effect on the difference.
type covariate struct {
	values []float64
	slope  float64 // of the difference on the values, on the log scale; 0: it was not removed
	p      float64 // of the t test of the slope
}

// withoutCovariates removes from differences, oriented so that positive is better, the effect of running first in a
// block and the effect of the machine's speed, as measured by the canary before each sample. It modifies the
// differences and returns both slopes.
//
// Least squares fit difference = effect + a*lead + b*speed, where lead is 1 if the candidate ran first, -1 if the other
// side did, and 0 if neither did, and speed is the ln ratio of the canary's numbers before both samples. Each covariate
// takes a degree of freedom. Orders are balanced over blocks, so the effect stays the same and the interval becomes
// narrower.
// The less certain covariate is left out until the t test of each remaining one has p < 0.002. A test at a common level
// would often pass on a machine without such an effect and narrow correct intervals. With this threshold, the error
// rates are those without any adjustment.
func withoutCovariates(differences []float64, pairs []Pair) (effect inference.Estimate, position, canary covariate) {
	position, canary = covariate{values: make([]float64, len(pairs))}, covariate{values: make([]float64, len(pairs))}
	var own, other int
	known := true
	for i, p := range pairs {
		switch position.values[i] = float64(p.First); {
		case p.First > 0:
			own++
		case p.First < 0:
			other++
		}
		if known = known && p.Canary > 0 && !math.IsInf(p.Canary, 1); known {
			canary.values[i] = math.Log(p.Canary)
		}
	}
	var use []*covariate
	if len(pairs) >= fewestForCovariate {
		if own >= fewestFirst && other >= fewestFirst {
			use = append(use, &position)
		}
		if known && even(canary.values) {
			use = append(use, &canary)
		}
	}
	if len(use) == 2 && len(pairs) < fewestForCovariate+moreForAnother { // keep the surer one of the two fitted alone
		for _, c := range use {
			regress(differences, []*covariate{c})
		}
		use = withoutLeastSure(use)
	}
	for {
		effect = regress(differences, use)
		if !slices.ContainsFunc(use, func(c *covariate) bool { return c.p >= byChance }) {
			break
		}
		use = withoutLeastSure(use)
	}
	for i := range differences {
		differences[i] -= position.slope*position.values[i] + canary.slope*canary.values[i]
	}
	return effect, position, canary
}

// withoutLeastSure removes the covariate with the largest p; of equal ones, the last.
func withoutLeastSure(list []*covariate) []*covariate {
	at := 0
	for i, c := range list {
		if c.p >= list[at].p {
			at = i
		}
	}
	list[at].slope = 0
	return slices.Delete(list, at, at+1)
}

// even reports whether values differ, and no single value causes most of their variance.
func even(values []float64) bool {
	mean := stat.Mean(values, nil)
	var most, all float64
	for _, v := range values {
		square := (v - mean) * (v - mean)
		most, all = max(most, square), all+square
	}
	return most < mostOfOne*all
}

// regress fits differences by least squares and sets slope and p of each covariate. It returns the difference where all
// covariates are 0. If covariates depend on each other, their p is 1.
func regress(differences []float64, covariates []*covariate) inference.Estimate {
	columns := make([][]float64, len(covariates))
	for i, c := range covariates {
		columns[i] = c.values
	}
	effect, slopes, ok := inference.Regress(differences, columns...)
	for i, c := range covariates {
		c.p = 1
		if !ok {
			continue
		}
		if c.slope = slopes[i].Mean; math.Abs(c.slope) > toleranceOfMargin {
			c.p = slopes[i].P()
		}
	}
	return effect
}

// removed returns caveats about the changes that were removed from the figures of a row.
func removed(position, canary covariate) (list []Caveat) {
	if position.slope != 0 {
		list = append(list, Caveat{CaveatPosition,
			fmt.Sprintf("the member that ran first in a block was %s (p = %.2g); effect, interval and p are "+
				"without that: a warm-up may make all positions equal",
				sided(relative(position.slope)), position.p)})
	}
	if canary.slope != 0 {
		list = append(list, Caveat{CaveatCanary,
			fmt.Sprintf("the machine's speed changed inside blocks, as the canary before each sample tells (p = "+
				"%.2g); effect, interval and p are without that", canary.p)})
	}
	return list
}

// sided writes a relative effect with its direction.
func sided(effect float64) string {
	if effect < 0 {
		return plain(-effect) + " worse"
	}
	return plain(effect) + " better"
}
