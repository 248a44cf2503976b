package stats

import (
	"math"

	"github.com/benchgraph/benchgraph/stats/inference"
)

// Deviation returns the standard deviation, from block to block, of the differences between both sides of a row, on the
// log scale; 0: there are too few blocks to tell, or no difference at all.
func (c *Comparison) Deviation() float64 {
	if c.Blocks < 2 || c.NoRatio || c.Confidence <= 0 {
		return 0
	}
	half := math.Log1p(c.High) - math.Log1p(c.Effect) // Low of a wide interval is too close to -1
	freedom := float64(c.Blocks - 1)
	for _, slope := range []float64{c.First, c.Canary} {
		if slope != 0 {
			freedom--
		}
	}
	return half / inference.Quantile((1+c.Confidence)/2, freedom) * math.Sqrt(float64(c.Blocks))
}

// Sees returns the smallest relative effect that a number of blocks, at least 2, shows in four of five cases, judged
// once at a confidence. deviation is the standard deviation of blocks on the log scale.
func Sees(deviation float64, blocks int, confidence float64) float64 {
	return relative(resolution(deviation, blocks, float64(blocks-1), 1-confidence))
}

// Resolution returns the smallest relative effect that a look with the given number of blocks, at least 2, shows in
// four of five cases. deviation is the standard deviation of blocks on the log scale. The result is at least the
// margin, since there is no verdict below it.
func (r Rule) Resolution(deviation float64, blocks int) float64 {
	r = r.withDefaults()
	return relative(max(math.Log1p(r.Tie), resolution(deviation, blocks, float64(blocks-1), r.level(blocks))))
}
