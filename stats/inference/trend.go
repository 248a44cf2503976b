package inference

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Trend returns the correlation of values with their order, and its two-sided p with the given degrees of freedom. The
// values must differ.
func Trend(values []float64, freedom float64) (r, p float64) {
	times := make([]float64, len(values))
	for i := range times {
		times[i] = float64(i)
	}
	r = stat.Correlation(times, values, nil)
	if math.Abs(r) >= 1 {
		return r, 0
	}
	t := math.Abs(r) * math.Sqrt(freedom/(1-r*r))
	return r, 2 * distuv.StudentsT{Sigma: 1, Nu: freedom}.CDF(-t)
}

// Alike returns the p of von Neumann's test of whether neighbouring values are alike, in Young's normal approximation.
// The values must differ. The mean square of successive differences over the variance is 2 if values are independent.
func Alike(values []float64) float64 {
	n := float64(len(values))
	_, deviation := stat.MeanStdDev(values, nil)
	var steps float64
	for i := 1; i < len(values); i++ {
		steps += (values[i] - values[i-1]) * (values[i] - values[i-1])
	}
	alike := 1 - steps/(2*(n-1)*deviation*deviation)
	return distuv.UnitNormal.CDF(-alike / math.Sqrt((n-2)/(n*n-1)))
}
