package inference

import (
	"math"
	"strconv"

	"gonum.org/v1/gonum/stat"
)

// GeometricMean returns the geometric mean of values, given as logarithms, without the digits that only the logarithm
// made up.
func GeometricMean(logs []float64) float64 {
	v := math.Exp(stat.Mean(logs, nil))
	if r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 15, 64), 64); err == nil {
		return r
	}
	return v
}
