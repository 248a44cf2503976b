package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/stats/inference"
	"pgregory.net/rapid"
)

// placed makes pairs from ln ratios and the side that ran first.
func placed(ratios []float64, first []int) []Pair {
	pairs := blocks(ratios...)
	for i := range pairs {
		pairs[i].Candidate, pairs[i].First = 100*math.Exp(ratios[i]), first[i]
	}
	return pairs
}

// The figures are those of a regression of these seven differences on lead, by hand. lead tells who ran first; it has
// the mean 1/7 and the sum of squares 48/7. The residuals are 2, -1, -1, 1, 0, 0, -1 thousandths around 0.031 -
// 0.05*lead.
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
	if v.Outcome != Win || len(v.Caveats) != 1 || v.Caveats[0].Kind != CaveatPosition ||
		!strings.Contains(v.Caveats[0].Text, "ran first in a block was 4.877 % worse") {
		t.Errorf("%s: %s, %q", v.Outcome, v.Reason, v.Caveats)
	}
	row := Comparison{Verdict: v}
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

// Figures and verdict are those without the effect of the position, however large it is, once it is no longer chance.
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
		for _, figures := range [][2]float64{{small.Effect, large.Effect}, {small.Low, large.Low},
			{small.High, large.High}} {
			if math.Abs(figures[0]-figures[1]) > 1e-9 {
				t.Fatalf("%v of %+v and %+v", figures, small, large)
			}
		}
	})
}

// On a machine that changes its speed from run to run, the part that the canary sees is removed. The figures are those
// of a regression that is solved in another way.
func TestWhatTheCanaryTellsIsRemoved(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	removed := 0
	for range 2000 {
		n := 8 + r.IntN(8)
		first, positioned := make([]int, n), r.IntN(2) == 0
		ratios, pairs := make([]float64, n), []Pair(nil)
		slope := []float64{0.9, -0.8}[r.IntN(2)] // a canary may print a rate, or a time
		for i := range n {
			first[i] = 1 - 2*(i%2)
			speed := 0.05 * r.NormFloat64()
			ratios[i] = 0.03 + slope*speed + 0.002*r.NormFloat64()
			if positioned {
				ratios[i] -= 0.06 * float64(first[i])
			}
			pairs = append(pairs, Pair{Block: i + 1, Candidate: 100 * math.Exp(ratios[i]), Against: 100,
				First: first[i], Canary: math.Exp(speed)})
		}
		v := Judge(pairs, Rule{Better: Higher})
		rows := make([][]float64, n)
		for i, p := range pairs {
			rows[i] = []float64{1}
			if v.First != 0 {
				rows[i] = append(rows[i], float64(p.First))
			}
			if v.Canary != 0 {
				rows[i] = append(rows[i], math.Log(p.Canary))
			}
		}
		coefficients, half := leastSquares(rows, ratios)
		want := map[string][2]float64{
			"effect": {math.Log1p(v.Effect), coefficients[0]}, "low": {math.Log1p(v.Low), coefficients[0] - half},
			"high": {math.Log1p(v.High), coefficients[0] + half},
		}
		if v.First != 0 {
			want["first"] = [2]float64{math.Log1p(v.First), coefficients[1]}
		}
		if v.Canary != 0 {
			want["canary"] = [2]float64{v.Canary, coefficients[len(coefficients)-1]}
			removed++
			if !slices.ContainsFunc(v.Caveats, func(c Caveat) bool { return c.Kind == CaveatCanary }) {
				t.Fatalf("no caveat says so: %+v", v)
			}
		}
		for what, figures := range want {
			if math.Abs(figures[0]-figures[1]) > 1e-9 {
				t.Fatalf("%s = %.12g, want %.12g in %+v", what, figures[0], figures[1], v)
			}
		}
	}
	if removed < 1700 {
		t.Errorf("removed in %d of 2000 cases", removed)
	}
}

// leastSquares solves the normal equations by elimination. It also returns the half width of the 95 % interval of the
// first coefficient.
func leastSquares(rows [][]float64, y []float64) (coefficients []float64, half float64) {
	k, n := len(rows[0]), len(rows)
	matrix := make([][]float64, k) // X'X, X'y and the first column of the unit matrix
	for i := range matrix {
		matrix[i] = make([]float64, k+2)
		for row := range rows {
			for j := range k {
				matrix[i][j] += rows[row][i] * rows[row][j]
			}
			matrix[i][k] += rows[row][i] * y[row]
		}
	}
	matrix[0][k+1] = 1
	for i := range k {
		for j := range k {
			if factor := matrix[j][i] / matrix[i][i]; i != j {
				for l := range matrix[j] {
					matrix[j][l] -= factor * matrix[i][l]
				}
			}
		}
	}
	for i := range k {
		coefficients = append(coefficients, matrix[i][k]/matrix[i][i])
	}
	var left float64
	for i, row := range rows {
		e := y[i]
		for j, x := range row {
			e -= coefficients[j] * x
		}
		left += e * e
	}
	freedom := float64(n - k)
	return coefficients, inference.Quantile(0.975, freedom) * math.Sqrt(left/freedom*matrix[0][k+1]/matrix[0][0])
}

// A canary removes nothing if it is known in some blocks only, or differs in one block alone.
func TestACanaryMustTellOfMoreThanOneBlock(t *testing.T) {
	for name, canary := range map[string][]float64{
		"one block is odd":   {1, 1, 1.3, 1, 1, 1, 1},
		"one is not known":   {1.1, 0.9, 1.2, 0.8, 1.1, 0, 0.95},
		"always the same":    {1, 1, 1, 1, 1, 1, 1},
		"five blocks":        {1.1, 0.9, 1.2, 0.8, 1.1},
		"it has no relation": {1.1, 1.1, 0.9, 0.9, 1.1, 0.9, 1},
	} {
		pairs := []Pair{}
		for i, c := range canary {
			value := 103 * c
			if name == "it has no relation" {
				value = 103 + float64(i%3)
			}
			pairs = append(pairs, Pair{Block: i + 1, Candidate: value, Against: 100 - float64(i)/10, Canary: c})
		}
		if v := Judge(pairs, Rule{Better: Higher}); v.Canary != 0 {
			t.Errorf("%s: a slope of %v was removed", name, v.Canary)
		}
	}
}
