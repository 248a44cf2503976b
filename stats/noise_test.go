package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/benchgraph/benchgraph/stats/inference"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"
)

// The deviation computed from a row's interval is the deviation of the original differences.
func TestDeviationOfARow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ratios := rapid.SliceOfN(rapid.Float64Range(-0.5, 0.5), 2, 40).Draw(t, "ratios")
		confidence := rapid.SampledFrom([]float64{0.9, 0.95, 0.99}).Draw(t, "confidence")
		var pairs []Pair
		for i, d := range ratios {
			pairs = append(pairs, Pair{Block: i + 1, Candidate: 100 * math.Exp(d), Against: 100})
		}
		row := Comparison{Verdict: Judge(pairs, Rule{Better: Higher, Confidence: confidence})}
		if want := stat.StdDev(ratios, nil); math.Abs(row.Deviation()-want) > 1e-9 {
			t.Fatalf("%v, want %v", row.Deviation(), want)
		}
	})
	if (&Comparison{Verdict: Verdict{Blocks: 1, Confidence: 0.95}}).Deviation() != 0 ||
		(&Comparison{Verdict: Verdict{Blocks: 7, NoRatio: true, Confidence: 0.95}}).Deviation() != 0 {
		t.Error("a deviation of nothing")
	}
}

// An effect of the size that Sees returns is found significant in about four of five cases.
func TestWhatIsSeen(t *testing.T) {
	const deviation, blocks, cases = 0.02, 7, 4000
	effect := math.Log1p(Sees(deviation, blocks, 0.95))
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range cases {
		var ratios []float64
		for range blocks {
			ratios = append(ratios, effect+deviation*random.NormFloat64())
		}
		mean, sd := stat.MeanStdDev(ratios, nil)
		if math.Abs(mean) > inference.Quantile(0.975, blocks-1)*sd/math.Sqrt(blocks) {
			found++
		}
	}
	if share := float64(found) / cases; share < 0.77 || share > 0.86 {
		t.Errorf("found in %.3f of the cases", share)
	}
}
