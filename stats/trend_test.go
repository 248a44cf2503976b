package stats

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Independent differences are seldom called ordered; a trend and an autocorrelation of 0.8 mostly are. The caveat
// stands with the verdict.
func TestTheOrderOfBlocks(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	const rounds = 2000
	counts := map[string]int{}
	for range rounds {
		iid, trend, chain := make([]float64, 15), make([]float64, 15), make([]float64, 15)
		state := random.NormFloat64()
		for i := range iid {
			iid[i], trend[i], chain[i] = random.NormFloat64(), 0.3*float64(i)+random.NormFloat64(), state
			state = 0.8*state + 0.6*random.NormFloat64()
		}
		for name, values := range map[string][]float64{"iid": iid, "trend": trend, "chain": chain} {
			counts[name] += len(ordered(values, float64(len(values)-1)))
		}
	}
	if counts["iid"] > rounds*3/100 || counts["trend"] < rounds*8/10 || counts["chain"] < rounds*4/10 {
		t.Errorf("caveats in %d rounds: %v", rounds, counts)
	}
	for _, values := range [][]float64{nil, {1, 2, 3, 4, 5}, {1, 1, 1, 1, 1, 1, 1}} {
		if list := ordered(values, float64(len(values)-1)); len(list) > 0 {
			t.Errorf("%v: %q", values, list)
		}
	}
	for _, story := range []struct {
		says  string
		pairs []Pair
	}{
		{"the difference grows from block to block", blocks(1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.071)},
		{"the difference shrinks from block to block", blocks(1.07, 1.06, 1.05, 1.04, 1.03, 1.02, 1.012)},
		{"are alike", blocks(1.01, 1.01, 1.01, 1.05, 1.05, 1.05, 1.05, 1.05, 1.05, 1.01, 1.01, 1.01)},
	} {
		v := Judge(story.pairs, Rule{Better: Higher})
		if len(v.Caveats) != 1 || v.Caveats[0].Kind != CaveatOrder || !strings.Contains(v.Caveats[0].Text, story.says) {
			t.Errorf("%s: %q", story.says, v.Caveats)
		}
	}
}
