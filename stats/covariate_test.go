package stats

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// placed makes pairs of ln ratios with who ran first.
func placed(ratios []float64, first []int) []Pair {
	pairs := blocks(ratios...)
	for i := range pairs {
		pairs[i].Candidate, pairs[i].First = 100*math.Exp(ratios[i]), first[i]
	}
	return pairs
}

// The figures are those of a regression of these seven differences on who ran first, by hand: lead has the mean 1/7 and the sum of
// squares 48/7, and the residuals are 2, -1, -1, 1, 0, 0, -1 thousandths around 0.031 - 0.05*lead.
func TestPositionIsRemoved(t *testing.T) {
	first := []int{1, -1, 1, -1, 1, -1, 1}
	residuals := []float64{0.002, -0.001, -0.001, 0.001, 0, 0, -0.001}
	ratios := make([]float64, len(first))
	for i := range ratios {
		ratios[i] = 0.031 - 0.05*float64(first[i]) + residuals[i]
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s = %.12g, want %.12g", what, got, want)
		}
	}
	v := Judge(placed(ratios, first), Rule{Better: Higher, Looks: Looks(4, 15)})
	deviation := math.Sqrt(8e-6 / 5)
	half := 2.570581835636314 * deviation * math.Sqrt(1.0/7+1.0/49/(48.0/7))
	near("effect", v.Effect, math.Expm1(0.031))
	near("first", v.First, math.Expm1(-0.05))
	near("low", v.Low, math.Expm1(0.031-half))
	near("high", v.High, math.Expm1(0.031+half))
	if v.Outcome != Win || len(v.Caveats) != 1 || v.Caveats[0].Kind != CaveatPosition || !strings.Contains(v.Caveats[0].Text, "ran first in a block was 4.877 % worse") {
		t.Errorf("%s: %s, %q", v.Outcome, v.Reason, v.Caveats)
	}
	row := v.Into(Comparison{})
	near("deviation", row.Deviation(), deviation*math.Sqrt(7)*math.Sqrt(1.0/7+1.0/49/(48.0/7)))
	without := Judge(placed(ratios, make([]int, len(ratios))), Rule{Better: Higher, Looks: Looks(4, 15)})
	if without.Outcome != Inconclusive || without.First != 0 || without.High-without.Low < 10*(v.High-v.Low) {
		t.Errorf("where orders are not known: %+v", without)
	}
	for name, pairs := range map[string][]Pair{
		"too few blocks":              placed(ratios[:5], first[:5]),
		"one side is first only once": placed(ratios, []int{1, 1, 1, -1, 1, 1, 1}),
		"one side is always first":    placed(ratios, []int{1, 1, 1, 1, 1, 1, 1}),
		"nothing to remove":           placed(residuals, first),
		"no difference at all":        placed(make([]float64, 7), first),
	} {
		if v := Judge(pairs, Rule{Better: Higher}); v.First != 0 {
			t.Errorf("%s: %v was removed", name, v.First)
		}
	}
}

// However large the effect of the position is, figures and verdict stay those without it, as soon as it is told from chance.
func TestPositionDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(6, 15).Draw(t, "blocks")
		clean, first := make([]float64, n), make([]int, n)
		for i := range clean {
			clean[i] = float64(rapid.IntRange(-30, 30).Draw(t, "thousandths")) / 1000
			first[i] = rapid.SampledFrom([]int{1, -1, 0}).Draw(t, "first")
		}
		shifted := func(by float64) Verdict {
			ratios := make([]float64, n)
			for i := range ratios {
				ratios[i] = clean[i] + by*float64(first[i])
			}
			return Judge(placed(ratios, first), Rule{Better: Higher})
		}
		small, large := shifted(2), shifted(-5)
		if (small.First == 0) != (large.First == 0) {
			t.Fatalf("removed %v and %v", small.First, large.First)
		}
		if small.First == 0 {
			return
		}
		for _, figures := range [][2]float64{{small.Effect, large.Effect}, {small.Low, large.Low}, {small.High, large.High}} {
			if math.Abs(figures[0]-figures[1]) > 1e-9 {
				t.Fatalf("%v of %+v and %+v", figures, small, large)
			}
		}
	})
}
