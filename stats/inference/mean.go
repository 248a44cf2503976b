package inference

import (
	"math"
	"strconv"

	"gonum.org/v1/gonum/stat"
)

// GeometricMean is the geometric mean of values by their logarithms, without the digits that logarithms make up.
func GeometricMean(logs []float64) float64 {
	v := math.Exp(stat.Mean(logs, nil))
	if r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 15, 64), 64); err == nil {
		return r
	}
	return v
}
