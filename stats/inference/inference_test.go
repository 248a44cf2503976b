package inference

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestSignFlip(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{1}, 1},
		{[]float64{0, 0, 0}, 1},
		{[]float64{1, 1, 1, 1}, 2.0 / 16},
		{[]float64{0.1, 0.2, 0.3}, 2.0 / 8},
		{[]float64{0.3, -0.1, -0.2}, 1},
		{[]float64{3, 2, -1}, 4.0 / 8}, // sums 6, 4, 2, 0 and their negatives: 4 is reached by ±6, ±4
		{[]float64{1, 1, 1, 1, 0}, 4.0 / 32},
	} {
		if p, drawn := SignFlip(test.values); p != test.want || drawn {
			t.Errorf("%v: p %v, want %v", test.values, p, test.want)
		}
	}
	random := rand.New(rand.NewPCG(3, 3))
	var values []float64
	for range 20 {
		values = append(values, random.NormFloat64()+0.4)
	}
	exact, _ := SignFlip(values)
	size := 0.0
	sum := 0.0
	for _, v := range values {
		size += math.Abs(v)
		sum += v
	}
	if estimate := drawnFlips(values, math.Abs(sum)); math.Abs(estimate-exact) > 0.004 {
		t.Errorf("drawn p %v, exact %v", estimate, exact)
	}
	p, drawn := SignFlip(append(values, 1))
	again, _ := SignFlip(append(values, 1))
	if !drawn || p != again || p <= 0 {
		t.Errorf("21 values: p %v, then %v, drawn %v", p, again, drawn)
	}
}

// Pruned branches must not change the count.
func TestSignFlipAgainstAllSigns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-1, 1),
			rapid.SampledFrom([]float64{0, 0.1, 0.2, 0.3, -0.1})), 1, 9).Draw(t, "values")
		var seen, size float64
		for _, v := range values {
			seen += v
			size += math.Abs(v)
		}
		extreme := 0
		for signs := range 1 << len(values) {
			var sum float64
			for i, v := range values {
				if signs>>i&1 == 1 {
					v = -v
				}
				sum += v
			}
			if math.Abs(sum) >= math.Abs(seen)-1e-12*size {
				extreme++
			}
		}
		if p, _ := SignFlip(values); p != float64(extreme)/float64(int(1)<<len(values)) {
			t.Fatalf("p %v, want %d of %d", p, extreme, 1<<len(values))
		}
	})
}

// The integration is compared with the tables in Pocock (1977) and in Jennison and Turnbull (2000), table 2.1: the
// boundary on the normal scale.
func TestPocockLevels(t *testing.T) {
	for _, test := range []struct {
		looks    int
		alpha    float64
		boundary float64
	}{
		{2, 0.05, 2.178}, {3, 0.05, 2.289}, {4, 0.05, 2.361}, {5, 0.05, 2.413}, {10, 0.05, 2.555},
		{2, 0.01, 2.772}, {3, 0.01, 2.873}, {5, 0.01, 2.986},
		{2, 0.10, 1.875}, {3, 0.10, 1.992}, {5, 0.10, 2.122},
	} {
		crossed := crosses(test.boundary, test.looks)
		if math.Abs(crossed-test.alpha) > 0.0005 {
			t.Errorf("%d looks at %.3f: crossed with %.5f, want %.2f", test.looks, test.boundary, crossed, test.alpha)
		}
		level := Pocock(test.looks, test.alpha)
		if want := math.Erfc(test.boundary / math.Sqrt2); math.Abs(level-want) > 0.0002 {
			t.Errorf("%d looks at alpha %.2f: level %.5f, want %.5f", test.looks, test.alpha, level, want)
		}
	}
	if got := Pocock(3, 0.05); got != 0.0221 {
		t.Errorf("three looks: %v", got)
	}
	// The printed levels and the integration are the same thing.
	for looks := 2; looks <= 5; looks++ {
		if printed, computed := Pocock(looks, 0.05), Pocock(looks, 0.05+1e-8); math.Abs(printed-computed) > 0.00006 {
			t.Errorf("%d looks: printed %.4f, computed %.6f", looks, printed, computed)
		}
	}
}

// The p of a sequence is never below that of its look, never above Bonferroni's, and grows with that of its look; at
// Pocock's level it is 5 %.
func TestThePOfAllLooks(t *testing.T) {
	if p := Overall(Pocock(5, 0.05), 5); math.Abs(p-0.05) > 0.0002 {
		t.Errorf("five looks at Pocock's level: %v", p)
	}
	rapid.Check(t, func(t *rapid.T) {
		looks := rapid.IntRange(0, 6).Draw(t, "looks")
		p := math.Pow(10, -rapid.Float64Range(0, 18).Draw(t, "magnitude"))
		q := p * rapid.Float64Range(1.01, 2).Draw(t, "factor")
		if all := Overall(p, looks); all < p || all > p*float64(max(1, looks))*(1+1e-6) || q < 1 &&
			Overall(q, looks) < all*(1-1e-3) {
			t.Fatalf("%d looks: %g becomes %g, and %g becomes %g", looks, p, all, q, Overall(q, looks))
		}
	})
}

func TestHolmAndBenjaminiHochberg(t *testing.T) {
	ps := []float64{0.01, 0.04, 0.03, 0.005}
	check := func(name string, got, want []float64) {
		t.Helper()
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-12 {
				t.Errorf("%s(%v) = %v, want %v", name, ps, got, want)
				return
			}
		}
	}
	// p.adjust of R.
	check("Holm", Holm(ps), []float64{0.03, 0.06, 0.06, 0.02})
	check("BenjaminiHochberg", BenjaminiHochberg(ps), []float64{0.02, 0.04, 0.04, 0.02})
	if len(Holm(nil)) != 0 || len(BenjaminiHochberg(nil)) != 0 {
		t.Error("nothing corrected is something")
	}
}

func TestCorrectionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ps := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 20).Draw(t, "ps")
		holm, bh := Holm(ps), BenjaminiHochberg(ps)
		for i := range ps {
			if bonferroni := math.Min(1, ps[i]*float64(len(ps))); holm[i] < ps[i] || holm[i] > bonferroni+1e-12 ||
				bh[i] < ps[i] || bh[i] > holm[i]+1e-12 {
				t.Fatalf("p %v: Holm %v, BH %v", ps[i], holm[i], bh[i])
			}
			for j := range ps {
				if ps[i] < ps[j] && (holm[i] > holm[j] || bh[i] > bh[j]) {
					t.Fatalf("order lost: %v → %v, %v", ps, holm, bh)
				}
			}
		}
	})
}
