package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/internal/needtest"
)

// blocks makes pairs with the given ratios.
func blocks(ratios ...float64) []Pair {
	var pairs []Pair
	for i, r := range ratios {
		pairs = append(pairs, Pair{Block: i + 1, Candidate: 100 * r, Against: 100})
	}
	return pairs
}

func repeated(ratio float64, n int) []Pair {
	return blocks(slices.Repeat([]float64{ratio}, n)...)
}

func TestVerdicts(t *testing.T) {
	adaptive := Rule{Better: Higher, Looks: Looks(7, 15)}
	fixed := func(n int) Rule { return Rule{Better: Higher, Looks: Looks(n, n)} }
	noisy := blocks(1.10, 0.97, 1.08, 0.99, 1.06, 0.98, 1.07)
	hopeless := blocks(1.10, 0.92, 1.07, 0.95, 1.02, 0.9, 1.08)
	for _, test := range []struct {
		name   string
		pairs  []Pair
		rule   Rule
		want   Outcome
		more   int
		reason string
	}{
		{"clearly better", blocks(1.05, 1.06, 1.04, 1.05, 1.055, 1.045, 1.05), adaptive, Win, 0, "better by"},
		{"clearly worse", blocks(0.95, 0.96, 0.94, 0.95, 0.955, 0.945, 0.95), adaptive, Loss, 0, "worse"},
		{"lower is better", blocks(0.95, 0.96, 0.94, 0.95, 0.955, 0.945, 0.95),
			Rule{Better: Lower, Looks: Looks(7, 15)}, Win, 0, "better by ×1.0527"},
		{"practically equal", blocks(1.001, 0.999, 1.002, 0.998, 1, 1.001, 1), adaptive, Tie, 0, "lies inside ±2 %"},
		{"identical", repeated(1, 7), adaptive, Tie, 0, "lies inside"},
		{"identical gain at the margin", repeated(1.02, 7), adaptive, Win, 0, "better by"},
		{"a thousandfold gain is no percentage", repeated(1000, 7), adaptive, Win, 0, "better by ×1000"},
		{"identical gain below the margin", repeated(1.0199, 7), adaptive, Tie, 0, "lies inside"},
		{"identical loss at the margin", repeated(1/1.02, 7), adaptive, Loss, 0, "worse"},
		{"noise wants more", noisy, adaptive, Inconclusive, 2, "open after 7 of at most 15 blocks"},
		{"too much noise to go on", hopeless, adaptive,
			Inconclusive, 0,
			"stopped after 7 of at most 15 blocks, because a verdict at the last look has a chance of only 4 %"},
		{"noise at the cap", noisy, fixed(7), Inconclusive, 0, "includes 0 and is too wide for a tie"},
		{"real but too small", blocks(1.019, 1.02, 1.018, 1.019, 1.02, 1.018, 1.0205, 1.0175), fixed(8), Tie, 0, ""},
		{"real, below the margin, not a tie", blocks(1.005, 1.032, 1.008, 1.031, 1.016, 1.012, 1.024, 1.022), fixed(8),
			Inconclusive, 0, "real but below the margin"},
		{"a block voided for good", append(blocks(1.10, 0.97, 1.08, 0.99, 1.06, 0.98, 1.07),
			Pair{Block: 8, Candidate: 99, Against: 100}), adaptive, Inconclusive, 1, "open after 8"},
		{"before the first look", repeated(1.1, 5), adaptive, Inconclusive, 2, "no verdict yet: 5 of the 7 blocks"},
		{"too few for ever", repeated(1.1, 3), fixed(3), Inconclusive, 0, "fewer than the 4"},
		{"too few so far", repeated(1.1, 3), Rule{Better: Higher, Looks: Looks(3, 7)}, Inconclusive, 1,
			"fewer than the 4"},
		{"five blocks rest on the t test", blocks(1.5, 1.52, 1.48, 1.5, 1.51), fixed(5), Win, 0, "better by"},
		{"no looks declared: once", blocks(1.05, 1.06, 1.04, 1.05, 1.055, 1.045, 1.05, 1.05), Rule{Better: Higher}, Win,
			0, ""},
		{"nothing", nil, adaptive, Inconclusive, 7, "0 blocks"},
		{"a zero", append(repeated(1.1, 7), Pair{Block: 8, Candidate: 0, Against: 100}), adaptive,
			Inconclusive, 0,
			"block 8 holds the value 0"},
		{"negative", append(repeated(1.1, 7), Pair{Block: 8, Candidate: 100, Against: -1}), adaptive,
			Inconclusive, 0,
			"value -1"},
		{"not a number", append(repeated(1.1, 7), Pair{Block: 8, Candidate: math.NaN(), Against: 1}), adaptive,
			Inconclusive, 0,
			"value NaN"},
		{"infinite", append(repeated(1.1, 7), Pair{Block: 8, Candidate: math.Inf(1), Against: 1}), adaptive,
			Inconclusive, 0,
			"value +Inf"},
		{"a block twice", append(repeated(1.1, 7), Pair{Block: 7, Candidate: 110, Against: 100}), adaptive,
			Inconclusive, 0,
			"block 7 occurs twice"},
		{"independent", repeated(1.1, 9), Rule{Better: Higher, Pairing: "independent"}, Inconclusive, 0,
			"not taken in blocks"},
		{"no direction", repeated(1.1, 7), Rule{}, Inconclusive, 0, "higher or lower"},
		{"bad tie", repeated(1.1, 7), Rule{Better: Higher, Tie: -1}, Inconclusive, 0, "tie = -1"},
		{"bad confidence", repeated(1.1, 7), Rule{Better: Higher, Confidence: 95}, Inconclusive, 0, "confidence = 95"},
		{"bad looks", repeated(1.1, 7), Rule{Better: Higher, Looks: []int{7, 7}}, Inconclusive, 0, "do not ascend"},
		{"bad pairing", repeated(1.1, 7), Rule{Better: Higher, Pairing: "both"}, Inconclusive, 0,
			"neither blocked nor independent"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := Judge(test.pairs, test.rule)
			if v.Outcome != test.want || v.More != test.more || !strings.Contains(v.Reason, test.reason) {
				t.Errorf("got %q, more %d, %q; want %q, more %d, …%s…", v.Outcome, v.More, v.Reason, test.want,
					test.more, test.reason)
			}
			if strings.HasPrefix(v.Reason, "no verdict") &&
				!slices.Contains(v.Caveats, Caveat{CaveatNoVerdict, v.Reason}) {
				t.Errorf("numbers without a verdict do not carry the reason %q: %q", v.Reason, v.Caveats)
			}
		})
	}
}

func TestFiguresAgainstKnownOnes(t *testing.T) {
	// The paired t test, the t interval, Welch's test and the pseudomedian of these values, by hand and by R 4.3.
	pairs := blocks(math.Exp(0.01), math.Exp(0.02), math.Exp(0.03), math.Exp(0.04))
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s = %.9g, want %.9g", what, got, want)
		}
	}
	v := Judge(pairs, Rule{Better: Higher})
	// mean 0.025, sd 0.0129099, se 0.00645497, t(3, 0.975) = 3.182446
	near("effect", v.Effect, math.Expm1(0.025))
	near("low", v.Low, math.Expm1(0.025-3.182446305*0.006454972))
	near("high", v.High, math.Expm1(0.025+3.182446305*0.006454972))
	near("Hodges-Lehmann", v.HodgesLehmann, math.Expm1(0.025))
	near("p", v.P, 2.0/16)
	near("value", v.Value, 100*math.Exp(0.025))
	near("against", v.AgainstValue, 100)

	// ln: {0, 0.2} against {0, 0.1, NaN}: difference 0.05, se sqrt(0.01+0.0025), df 0.0125^2/(1e-4+6.25e-6) = 1.470588.
	// Quantile and p of t there by numerical integration.
	w := Judge([]Pair{{Block: 1, Candidate: 1, Against: 1},
		{Block: 2, Candidate: math.Exp(0.2), Against: math.Exp(0.1)},
		{Block: 3, Candidate: math.NaN(), Against: math.NaN()}}, Rule{Better: Higher, Pairing: "independent"})
	near("Welch effect", w.Effect, math.Expm1(0.05))
	if w.Blocks != 2 || w.Outcome != Inconclusive || !(w.Low < w.Effect && w.Effect < w.High) ||
		!(w.P > 0.5 && w.P < 0.9) {
		t.Errorf("Welch: %+v", w)
	}
}

func TestHolmWithinACommit(t *testing.T) {
	// At 7 blocks the t test's p is 0.020 alone, and 0.060 as the least of three.
	strong := blocks(1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.08)
	weak := blocks(1.06, 0.97, 1.06, 1.06, 1.01, 1.06, 1.06)
	rule := Rule{Better: Higher, Looks: []int{7}}
	alone := Judge(weak, rule)
	if alone.Outcome != Win {
		t.Fatalf("alone: %q, %s", alone.Outcome, alone.Reason)
	}
	same := repeated(1, 7)
	together := JudgeTogether([][]Pair{weak, same, same, same}, rule)
	if v := together[0]; v.Outcome != Inconclusive || !strings.Contains(v.Reason, "Holm") || v.RawP != alone.P ||
		math.Abs(v.PT-4*alone.PT) > 1e-12 {
		t.Errorf("beside three ties: %q, %s, p %v of %v", v.Outcome, v.Reason, v.PT, alone.PT)
	}
	if v := together[1]; v.Outcome != Tie {
		t.Errorf("its neighbour: %q", v.Outcome)
	}
	if v := JudgeTogether([][]Pair{strong, weak}, rule); v[0].Outcome != Win || v[1].Outcome != Win {
		t.Errorf("a strong neighbour takes the first step of Holm: %q, %q", v[0].Outcome, v[1].Outcome)
	}
	open := JudgeTogether([][]Pair{weak, same, same, same}, Rule{Better: Higher, Looks: []int{7, 15}})
	if v := open[0]; v.More != 8 {
		t.Errorf("a win that Holm holds back wants more blocks, got %d", v.More)
	}
	// A contrast that cannot be tested takes nothing from the others.
	if v := JudgeTogether([][]Pair{weak, same[:2], same[:1], nil}, rule)[0]; v.Outcome != Win || v.P != v.RawP {
		t.Errorf("beside untestable ones: %q, p %v", v.Outcome, v.P)
	}
}

// The exact p of four blocks cannot be below 0.125. It is reported, but four clear blocks are a win all the same.
func TestFourBlocksAreEnough(t *testing.T) {
	gain := blocks(1.05, 1.06, 1.04, 1.05)
	for _, v := range JudgeTogether([][]Pair{gain, gain, gain}, Rule{Better: Higher, Looks: Looks(4, 15)}) {
		if v.RawP != 0.125 || v.P != 0.375 || v.Outcome != Win || v.PT > 0.0105 || v.Look != 1 || len(v.Caveats) != 0 {
			t.Errorf("%q at look %d: p %v, after Holm %v, by the t test %v, caveats %q", v.Outcome, v.Look, v.RawP, v.P,
				v.PT, v.Caveats)
		}
	}
}

func TestDrawnSignsAreSaid(t *testing.T) {
	if v := Judge(repeated(1.1, 21), Rule{Better: Higher}); v.Outcome != Win ||
		!strings.Contains(fmt.Sprint(v.Caveats), "fixed seed") {
		t.Errorf("21 blocks: %q, %q", v.Outcome, v.Caveats)
	}
}

// Properties that hold for all samples.
func TestVerdictProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "n")
		value := rapid.OneOf(rapid.Float64Range(90, 110), rapid.Float64Range(1e-300, 1e300), rapid.Just(100.0),
			rapid.Just(102.0))
		first := rapid.SampledFrom([]int{0, 1, -1})
		canary := rapid.OneOf(rapid.Float64Range(0.9, 1.1), rapid.Float64Range(1e-300, 1e300), rapid.Just(1.0))
		var pairs, mirrored, scaled []Pair
		for i := range n {
			p := Pair{i, value.Draw(t, "candidate"), value.Draw(t, "against"), first.Draw(t, "first"),
				canary.Draw(t, "canary")}
			pairs = append(pairs, p)
			mirrored = append(mirrored, Pair{i, p.Against, p.Candidate, -p.First, 1 / p.Canary})
			scaled = append(scaled, Pair{i, p.Candidate / 8, p.Against / 8, p.First, p.Canary})
		}
		slices.Reverse(scaled)
		rule := Rule{Better: Higher, Looks: Looks(rapid.IntRange(1, 8).Draw(t, "samples"),
			rapid.IntRange(1, 12).Draw(t, "max"))}
		v := Judge(pairs, rule)
		for _, figure := range []float64{v.Effect, v.First, v.Canary, v.Low, v.High, v.LookLow, v.LookHigh,
			v.HodgesLehmann, v.P, v.RawP, v.Value, v.AgainstValue} {
			if math.IsNaN(figure) || math.IsInf(figure, 0) {
				t.Fatalf("figure %v in %+v", figure, v)
			}
		}
		if v.Blocks >= 2 && (v.Low > v.Effect || v.High < v.Effect || v.P < v.RawP || v.P > 1) {
			t.Fatalf("out of order: %+v", v)
		}
		if (v.Outcome == Win || v.Outcome == Loss || v.Outcome == Tie) && (v.More != 0 || v.Blocks < 4) {
			t.Fatalf("decided, and wants more: %+v", v)
		}
		other := Judge(mirrored, rule)
		swapped := map[Outcome]Outcome{Win: Loss, Loss: Win}
		if want, ok := swapped[v.Outcome]; ok && other.Outcome != want || !ok && other.Outcome != v.Outcome {
			t.Fatalf("%q, with sides exchanged %q", v.Outcome, other.Outcome)
		}
		lower := rule
		lower.Better = Lower
		if w := Judge(mirrored, lower); w.Outcome != v.Outcome {
			t.Fatalf("%q, with sides and direction exchanged %q", v.Outcome, w.Outcome)
		}
		if s := Judge(scaled, rule); s.Outcome != v.Outcome || s.More != v.More {
			t.Fatalf("%q, in another unit and order %q", v.Outcome, s.Outcome)
		}
	})
}

// simulate runs the whole sequential procedure: look, and measure more while the verdict asks for it.
func simulate(random *rand.Rand, effect, noise float64, contrasts int) []Verdict {
	rule := Rule{Better: Higher, Looks: Looks(4, 15)}
	family := make([][]Pair, contrasts)
	want := 4
	for {
		for len(family[0]) < want {
			for c := range family {
				against := 1000 * math.Exp(0.05*random.NormFloat64())
				ratio := math.Log1p(effect) + noise*random.NormFloat64()
				first := 1 - 2*((len(family[c])+c)%2)
				family[c] = append(family[c], Pair{Block: len(family[c]), Candidate: against * math.Exp(ratio),
					Against: against, First: first})
			}
		}
		verdicts := JudgeTogether(family, rule)
		more := 0
		for _, v := range verdicts {
			more = max(more, v.More)
		}
		if more == 0 {
			return verdicts
		}
		want += more
	}
}

// The promises of the verdict: its rate of errors, and its power. The rates are those of a fixed seed; the noise is
// that of one ln ratio.
func TestErrorRates(t *testing.T) {
	needtest.NoRace(t)
	type rate struct{ least, most float64 }
	never, always := rate{0, 0}, rate{1, 1}
	for _, test := range []struct {
		effect, noise        float64
		contrasts, trials    int
		win, loss, both, tie rate
	}{
		{0, 0.02, 1, 3000, rate{0, 0.006}, rate{0, 0.006}, rate{0, 0.01}, rate{0.95, 1}},
		{0, 0.02, 3, 500, rate{0, 0.01}, rate{0, 0.01}, rate{0, 0.01}, rate{0.95, 1}},
		// Where the margin no longer helps, the level of the looks alone holds the rate: 5.0 % in 20,000 trials.
		{0, 0.20, 1, 1500, rate{0, 0.04}, rate{0, 0.04}, rate{0, 0.06}, rate{0, 0.001}},
		{0, 0.20, 3, 500, rate{0, 0.02}, rate{0, 0.02}, rate{0, 0.03}, rate{0, 0.001}},
		{0.03, 0.02, 1, 2000, rate{0.95, 1}, never, rate{0.95, 1}, rate{0, 0.02}},
		{0.03, 0.02, 3, 400, rate{0.95, 1}, never, rate{0.95, 1}, rate{0, 0.02}},
		{-0.03, 0.02, 1, 2000, never, rate{0.95, 1}, rate{0.95, 1}, rate{0, 0.02}},
		// At the margin a tie is the error: 5 % a look.
		{0.02, 0.02, 1, 1000, rate{0.3, 0.9}, never, rate{0.3, 0.9}, rate{0, 0.15}},
		{0.01, 0.003, 1, 500, never, never, never, rate{0.99, 1}},
		{0.20, 0.02, 1, 300, always, never, always, never},
	} {
		t.Run(fmt.Sprintf("%g%% at %g%% noise over %d", 100*test.effect, 100*test.noise, test.contrasts),
			func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(20260101, uint64(test.contrasts)))
				counts := map[Outcome]int{}
				for range test.trials {
					for _, v := range simulate(random, test.effect, test.noise, test.contrasts) {
						counts[v.Outcome]++
					}
				}
				t.Log(counts)
				check := func(what string, count int, want rate) {
					if got := float64(count) / float64(test.trials*test.contrasts); got < want.least ||
						got > want.most {
						t.Errorf("%s: %.4f, want %.4f to %.4f", what, got, want.least, want.most)
					}
				}
				check("win", counts[Win], test.win)
				check("loss", counts[Loss], test.loss)
				check("win or loss", counts[Win]+counts[Loss], test.both)
				check("tie", counts[Tie], test.tie)
			})
	}
}
