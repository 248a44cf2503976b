package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// An effect of the size Detectable is found in about four of five cases, and Needed blocks settle a contrast about as
// often.
func TestTheDetectableEffectIsDetected(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	noisy := func(blocks int, effect float64) []Pair {
		pairs := make([]Pair, blocks)
		for i := range pairs {
			pairs[i] = Pair{Block: i + 1, Candidate: math.Exp(effect + 0.05*random.NormFloat64()), Against: 1}
		}
		return pairs
	}
	// The noise that one contrast sees is itself noisy, so the effect is that of many contrasts' mean.
	var size, found float64
	const rounds = 500
	for range rounds {
		size += math.Log1p(Judge(noisy(15, 0), Rule{Better: Higher}).Detectable) / rounds
	}
	for range rounds {
		if Judge(noisy(15, size), Rule{Better: Higher}).Outcome == Win {
			found += 1.0 / rounds
		}
	}
	if found < 0.75 || found > 0.87 {
		t.Errorf("an effect of %.1f %% was found in %.0f %% of the cases", 100*size, 100*found)
	}
	var open []Pair
	for i, d := range []float64{0.1, -0.06, 0.08, -0.05, 0.1, -0.04, 0.09} {
		open = append(open, Pair{Block: i + 1, Candidate: math.Exp(d), Against: 1})
	}
	v := Judge(open, Rule{Better: Higher})
	if v.Outcome != Inconclusive || v.Needed <= 7 || v.Detectable < 0.02 {
		t.Errorf("%s: detectable %v, needed %d", v.Outcome, v.Detectable, v.Needed)
	}
	if v := Judge(repeated(1.1, 7), Rule{Better: Higher}); v.Detectable != 0 || v.Needed != 0 {
		t.Errorf("without noise: detectable %v, needed %d", v.Detectable, v.Needed)
	}
}
