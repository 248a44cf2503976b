package stats

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	power    = 0.8    // chance of a verdict for which an effect counts as detectable
	farthest = 10_000 // blocks beyond which a forecast says nothing
)

// foresee computes which effect the blocks could have shown and, for an inconclusive contrast, how many blocks would settle
// it. Both suppose that the noise stays as it was.
func (c *contrast) foresee(margin, level float64) {
	if c.estimate.error <= 0 || c.estimate.freedom <= 0 {
		return
	}
	deviation := c.estimate.error * math.Sqrt(float64(c.Blocks))
	c.Detectable = relative(max(margin, resolution(deviation, c.Blocks, level)))
	if c.Outcome != Inconclusive {
		return
	}
	size := math.Abs(c.estimate.mean)
	further := sort.Search(farthest-c.Blocks, func(i int) bool {
		n := c.Blocks + 1 + i
		if size < margin {
			return size+quantile(0.95, n)*deviation/math.Sqrt(float64(n)) < margin
		}
		return resolution(deviation, n, level) <= size
	})
	if n := c.Blocks + 1 + further; n <= farthest {
		c.Needed = n
	}
}

// resolution is the smallest difference on the log scale that n blocks show with the chance power.
func resolution(deviation float64, n int, level float64) float64 {
	return (quantile(1-level/2, n) + quantile(power, n)) * deviation / math.Sqrt(float64(n))
}

// quantile is that of the t distribution for n blocks.
func quantile(p float64, n int) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile(p)
}
