package stats

import (
	"math"
	"sort"

	"github.com/benchgraph/benchgraph/stats/inference"
	"gonum.org/v1/gonum/stat/distuv"
)

const (
	power    = 0.8    // chance of a verdict for which an effect counts as detectable
	farthest = 10_000 // blocks beyond which a forecast says nothing
	futile   = 0.1    // chance of a verdict at the last look below which no further block is measured
)

// chance returns the probability that a contrast has a verdict at the last look, after last blocks. It predicts the
// mean at that look from the blocks so far, by a t distribution around their mean, and supposes that the noise stays
// the same.
func (c *contrast) chance(last int, margin, level float64) float64 {
	n, all := float64(c.Blocks), float64(last)
	deviation := c.estimate.Error * math.Sqrt(n)
	foretold := distuv.StudentsT{Mu: c.estimate.Mean, Sigma: deviation * math.Sqrt((all-n)/(n*all)),
		Nu: c.estimate.Freedom}
	large := max(margin, inference.Quantile(1-level/2, c.freedom(last))*deviation/math.Sqrt(all))
	small := margin - inference.Quantile(0.95, c.freedom(last))*deviation/math.Sqrt(all)
	p := foretold.CDF(-large) + foretold.CDF(2*foretold.Mu-large) // the distribution is symmetric
	if small > 0 {
		p += foretold.CDF(small) - foretold.CDF(-small)
	}
	return p
}

// foresee computes which effect the blocks could have shown and, for an inconclusive contrast, how many blocks would
// settle it. Both suppose that the noise stays as it was.
func (c *contrast) foresee(margin float64, rule Rule) {
	if c.estimate.Error <= 0 || c.estimate.Freedom <= 0 {
		return
	}
	deviation := c.estimate.Error * math.Sqrt(float64(c.Blocks))
	c.Detectable = relative(max(margin, resolution(deviation, c.Blocks, c.estimate.Freedom, rule.level(c.Blocks))))
	if c.Outcome != Inconclusive {
		return
	}
	size := math.Abs(c.estimate.Mean)
	further := sort.Search(farthest-c.Blocks, func(i int) bool {
		n := c.Blocks + 1 + i
		if size < margin {
			return size+inference.Quantile(0.95, c.freedom(n))*deviation/math.Sqrt(float64(n)) < margin
		}
		return resolution(deviation, n, c.freedom(n), rule.level(n)) <= size
	})
	if n := c.Blocks + 1 + further; n <= farthest {
		c.Needed = n
	}
}

// freedom returns the degrees of freedom with n blocks.
func (c *contrast) freedom(n int) float64 { return c.estimate.Freedom + float64(n-c.Blocks) }

// resolution returns the smallest difference on the log scale that n blocks show with probability power.
func resolution(deviation float64, n int, freedom, level float64) float64 {
	away := inference.Quantile(1-level/2, freedom) + inference.Quantile(power, freedom)
	return away * deviation / math.Sqrt(float64(n))
}
