package stats

import (
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/stats/inference"
	"gonum.org/v1/gonum/stat"
)

// equalZeros gives each block in which both samples are zero a ratio of 1, since they are equal.
func equalZeros(pairs []Pair) []Pair {
	changed := slices.Clone(pairs)
	for i, p := range changed {
		if p.Candidate == 0 && p.Against == 0 {
			changed[i].Candidate, changed[i].Against = 1, 1
		}
	}
	return changed
}

// vanished reports whether one side is zero in every block and the other one in none.
func vanished(pairs []Pair) bool {
	own := !slices.ContainsFunc(pairs, func(p Pair) bool { return p.Candidate != 0 || !(p.Against > 0) })
	other := !slices.ContainsFunc(pairs, func(p Pair) bool { return p.Against != 0 || !(p.Candidate > 0) })
	return len(pairs) > 0 && (own || other)
}

// vanish judges a contrast with a side that is zero in all blocks, by the plain differences.
func (c contrast) vanish(pairs []Pair, rule Rule) contrast {
	differences := make([]float64, len(pairs))
	for i, p := range pairs {
		differences[i] = orient(p.Candidate-p.Against, rule.Better)
	}
	c.NoRatio, c.Blocks = true, len(pairs)
	c.Value, c.AgainstValue = arithmetic(pairs)
	if c.Blocks >= 2 {
		mean, deviation := stat.MeanStdDev(differences, nil)
		c.estimate = inference.Estimate{Mean: mean, Error: stat.StdErr(deviation, float64(c.Blocks)),
			Freedom: float64(c.Blocks - 1)}
		c.RawP, _ = inference.SignFlip(differences)
		c.P, c.PT = c.RawP, c.estimate.P()
	}
	if !c.reached(rule) {
		return c
	}
	low, high := c.estimate.Interval(1 - rule.level(c.Blocks))
	text := fmt.Sprintf("%.6g against %.6g in all blocks", c.Value, c.AgainstValue)
	switch {
	case low > 0:
		c.Outcome, c.Reason = Win, "better: "+text
	case high < 0:
		c.Outcome, c.Reason = Loss, "worse: "+text
	default:
		c.Outcome, c.Reason = Inconclusive, text+", and the other side varies too much"
		c.More = Next(rule.Looks, c.Blocks)
	}
	return c
}

// arithmetic returns the arithmetic means of both sides: zeros have no geometric mean.
func arithmetic(pairs []Pair) (candidate, against float64) {
	n := float64(len(pairs))
	for _, p := range pairs {
		candidate, against = candidate+p.Candidate/n, against+p.Against/n
	}
	return candidate, against
}
