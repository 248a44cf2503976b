package inference

import "math"

// FisherExact returns the two-sided p of Fisher's exact test of two groups having the same chance of a loss. The first
// group lost a and kept b; the other lost c and kept d. All counts are at least 0.
func FisherExact(a, b, c, d int) float64 {
	n, lost, first := a+b+c+d, a+c, a+b
	logFactorial := func(k int) float64 {
		v, _ := math.Lgamma(float64(k) + 1)
		return v
	}
	logChance := func(x int) float64 { // of x losses in the first group
		choose := func(n, k int) float64 { return logFactorial(n) - logFactorial(k) - logFactorial(n-k) }
		return choose(first, x) + choose(n-first, lost-x) - choose(n, lost)
	}
	seen := logChance(a)
	p := 0.0
	for x := max(0, lost-(n-first)); x <= min(lost, first); x++ {
		if chance := logChance(x); chance <= seen+1e-9 {
			p += math.Exp(chance)
		}
	}
	return min(p, 1)
}
