package stats

import (
	"fmt"
	"math"
	"slices"

	"github.com/benchgraph/benchgraph/stats/inference"
	"gonum.org/v1/gonum/stat"
)

// contrast is a verdict in the making.
type contrast struct {
	Verdict
	estimate inference.Estimate
	testable bool // there can be a verdict
}

// measure computes the figures of one contrast, and finds the reason if there can be no verdict.
func measure(pairs []Pair, rule Rule) contrast {
	c := contrast{Verdict: Verdict{Better: rule.Better, Confidence: rule.Confidence, Tie: rule.Tie, Looks: rule.Looks,
		RawP: 1, P: 1}}
	if flaw := rule.flaw(); flaw != "" {
		return c.without(flaw)
	}
	noVerdict := map[string]string{
		"independent": "no verdict: the samples were not taken in blocks (pairing = \"independent\"), so these are " +
			"only numbers",
		Runs: "no verdict: other changes of the machine between the runs are part of the difference, so " +
			"these are only numbers",
	}[rule.Pairing]
	original := pairs
	if noVerdict == "" {
		if vanished(pairs) {
			return c.vanish(pairs, rule)
		}
		pairs = equalZeros(pairs)
	}
	if flaw := flawOf(pairs, noVerdict != ""); flaw != "" {
		return c.without("no verdict: " + flaw)
	}
	if noVerdict != "" {
		c.unpaired(pairs, rule)
		return c.without(noVerdict)
	}
	c.paired(pairs, rule)
	if !slices.Equal(pairs, original) {
		c.Value, c.AgainstValue = arithmetic(original)
	}
	if !c.reached(rule) {
		return c
	}
	c.testable = true
	return c
}

// reached finds the look that the blocks have reached. Without a look, or with too few blocks, the contrast ends
// without a verdict.
func (c *contrast) reached(rule Rule) bool {
	for i, blocks := range rule.Looks {
		if c.Blocks >= blocks {
			c.Look = i + 1
		}
	}
	if len(rule.Looks) == 0 && c.Blocks > 0 {
		c.Look = 1
	}
	switch {
	case c.Blocks < fewest:
		c.More = Next(rule.Looks, c.Blocks)
		*c = c.without(fmt.Sprintf("no verdict: %d blocks, fewer than the %d that one needs, so these are only numbers",
			c.Blocks, fewest))
		return false
	case c.Look == 0:
		c.More = Next(rule.Looks, c.Blocks)
		*c = c.without(fmt.Sprintf("no verdict yet: %d of the %d blocks of the first look", c.Blocks, rule.Looks[0]))
		return false
	}
	return true
}

// without ends the contrast without a verdict. The reason is a caveat, too: it must stay with the numbers.
func (c contrast) without(reason string) contrast {
	c.Outcome, c.Reason = Inconclusive, reason
	c.Caveats = append(c.Caveats, Caveat{CaveatNoVerdict, reason})
	return c
}

// NoLogarithm is the end of the reason of a row with values that are not positive. No further block gives such a row a
// verdict.
const NoLogarithm = ", which has no logarithm"

// flawOf describes a block that makes a verdict impossible; empty: there is none.
func flawOf(pairs []Pair, independent bool) string {
	seen := map[int]bool{}
	for _, p := range pairs {
		for _, v := range []float64{p.Candidate, p.Against} {
			if independent && math.IsNaN(v) {
				continue
			}
			if !(v > 0) || math.IsInf(v, 0) {
				return fmt.Sprintf("block %d holds the value %v%s", p.Block, v, NoLogarithm)
			}
		}
		if seen[p.Block] && !independent {
			return fmt.Sprintf("block %d occurs twice", p.Block)
		}
		seen[p.Block] = true
	}
	return ""
}

// paired computes the figures of a blocked design.
func (c *contrast) paired(pairs []Pair, rule Rule) {
	var ratios, own, other []float64
	for _, p := range pairs {
		a, b := math.Log(p.Candidate), math.Log(p.Against)
		own, other = append(own, a), append(other, b)
		ratios = append(ratios, orient(a-b, rule.Better))
	}
	c.Blocks = len(ratios)
	if c.Blocks == 0 {
		return
	}
	var position, canary covariate
	c.estimate, position, canary = withoutCovariates(ratios, pairs)
	c.First, c.Canary, c.Caveats = relative(position.slope), canary.slope,
		append(c.Caveats, removed(position, canary)...)
	c.describe(own, other)
	if c.Blocks < 2 {
		return
	}
	c.bounds(rule.Confidence)
	c.HodgesLehmann = relative(inference.HodgesLehmann(ratios))
	c.Caveats = append(c.Caveats, ordered(ratios, c.estimate.Freedom)...)
	var drawn bool
	c.RawP, drawn = inference.SignFlip(ratios)
	c.P = c.RawP
	if drawn {
		c.Caveats = append(c.Caveats,
			Caveat{CaveatTest,
				fmt.Sprintf("p is from %d random sign flips with a fixed seed: %d blocks are too many to enumerate",
					inference.Draws, c.Blocks)})
	}
}

// unpaired computes the figures of an independent design, after Welch.
func (c *contrast) unpaired(pairs []Pair, rule Rule) {
	var own, other []float64
	for _, p := range pairs {
		if !math.IsNaN(p.Candidate) {
			own = append(own, math.Log(p.Candidate))
		}
		if !math.IsNaN(p.Against) {
			other = append(other, math.Log(p.Against))
		}
	}
	c.Blocks = min(len(own), len(other))
	if c.Blocks == 0 {
		return
	}
	c.describe(own, other)
	c.estimate.Mean = orient(stat.Mean(own, nil)-stat.Mean(other, nil), rule.Better)
	c.Effect = relative(c.estimate.Mean)
	if c.Blocks < 2 {
		return
	}
	n, m := float64(len(own)), float64(len(other))
	a, b := stat.Variance(own, nil)/n, stat.Variance(other, nil)/m
	c.estimate.Error = math.Sqrt(a + b)
	c.estimate.Freedom = n + m - 2
	if a+b > 0 {
		c.estimate.Freedom = (a + b) * (a + b) / (a*a/(n-1) + b*b/(m-1))
	}
	c.bounds(rule.Confidence)
	c.RawP = c.estimate.P()
	c.P = c.RawP
	c.Caveats = append(c.Caveats, Caveat{CaveatTest, fmt.Sprintf("interval and p are Welch's, of %d samples against %d",
		len(own), len(other))})
}

// describe writes the figures that need one sample on each side.
func (c *contrast) describe(own, other []float64) {
	c.Effect = relative(c.estimate.Mean)
	c.Value, c.AgainstValue = inference.GeometricMean(own), inference.GeometricMean(other)
}

func (c *contrast) bounds(confidence float64) {
	low, high := c.estimate.Interval(confidence)
	c.Low, c.High = relative(low), relative(high)
	c.LookLow, c.LookHigh = c.Low, c.High
}

func orient(d float64, better string) float64 {
	if better == Lower {
		return -d
	}
	return d
}

// relative turns a ln ratio into a relative effect. The effect stays finite, because JSON cannot hold an infinite one.
func relative(d float64) float64 { return min(math.Expm1(d), math.MaxFloat64) }
