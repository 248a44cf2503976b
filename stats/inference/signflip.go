package inference

import (
	"math"
	"math/rand/v2"
)

const (
	mostToEnumerate = 20 // values: 2^19 sums
	// Draws is the number of random choices of signs for more values.
	Draws = 100_000
)

// SignFlip returns the two-sided p-value of the sign-flip test: the share of all ways to choose the values' signs whose
// sum is at least as far from 0 as the observed sum. It supposes only that without an effect each value is as likely as
// its negative. Up to 20 values it is exact. With more values, drawn is true and p comes from 100,000 random choices
// with a fixed seed; counting the observed choice, too, keeps p valid.
func SignFlip(values []float64) (p float64, drawn bool) {
	var sum, size float64
	for _, v := range values {
		sum += v
		size += math.Abs(v)
	}
	if size == 0 {
		return 1, false
	}
	// Sums that are equal in theory differ in their last bits.
	threshold := math.Abs(sum) - 1e-12*size
	if len(values) > mostToEnumerate {
		return drawnFlips(values, threshold), true
	}
	// Flipping all signs changes no distance, so the first sign can stay.
	rest := size - math.Abs(values[0])
	extreme := countFlips(values[1:], values[0], rest, threshold)
	return float64(extreme) / float64(int(1)<<(len(values)-1)), false
}

// countFlips counts the choices of signs of values for which sum plus the signed values reaches the threshold. size is
// the sum of the values' distances from 0. If the values cannot bring sum below the threshold, or not up to it, no
// further steps are needed.
func countFlips(values []float64, sum, size, threshold float64) int {
	distance := math.Abs(sum)
	switch {
	case len(values) == 0 && distance >= threshold, distance-size >= threshold*(1+1e-12):
		return 1 << len(values)
	case len(values) == 0, distance+size < threshold*(1-1e-12):
		return 0
	}
	v, rest := values[0], max(0, size-math.Abs(values[0]))
	return countFlips(values[1:], sum+v, rest, threshold) + countFlips(values[1:], sum-v, rest, threshold)
}

func drawnFlips(values []float64, threshold float64) float64 {
	random := rand.New(rand.NewPCG(1, uint64(len(values))))
	extreme := 1
	for range Draws {
		var sum float64
		var bits uint64
		for i, v := range values {
			if i%64 == 0 {
				bits = random.Uint64()
			}
			if bits&1 == 0 {
				v = -v
			}
			bits >>= 1
			sum += v
		}
		if math.Abs(sum) >= threshold {
			extreme++
		}
	}
	return float64(extreme) / (Draws + 1)
}
