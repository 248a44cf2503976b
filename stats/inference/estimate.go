// Package inference has the statistical methods behind verdicts, on plain numbers: estimates and their intervals, exact
// tests, and corrections for several looks and several contrasts.
package inference

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Estimate is a mean with what its t interval depends on.
type Estimate struct {
	Mean    float64
	Error   float64 // standard error
	Freedom float64 // degrees of freedom; 0: no interval
}

// Interval returns the two-sided t interval of the mean.
func (e Estimate) Interval(confidence float64) (low, high float64) {
	if e.Error == 0 {
		return e.Mean, e.Mean
	}
	t := distuv.StudentsT{Sigma: 1, Nu: e.Freedom}.Quantile(1 - (1-confidence)/2)
	return e.Mean - t*e.Error, e.Mean + t*e.Error
}

// MeanInterval returns the mean of values with its two-sided t interval. With fewer than two values the interval is
// infinite.
func MeanInterval(values []float64, confidence float64) (mean, low, high float64) {
	mean, deviation := stat.MeanStdDev(values, nil)
	if len(values) < 2 {
		return mean, math.Inf(-1), math.Inf(1)
	}
	n := float64(len(values))
	low, high = Estimate{mean, stat.StdErr(deviation, n), n - 1}.Interval(confidence)
	return mean, low, high
}

// leastP bounds P from below. Values without any spread would have a P of 0, which no number of values can prove; the
// spread of nearly equal values is a matter of rounding.
const leastP = 1e-15

// P returns the p of the two-sided t test of a mean of 0, and leastP if it is less.
func (e Estimate) P() float64 {
	switch {
	case e.Mean == 0:
		return 1
	case e.Error == 0:
		return leastP
	}
	return max(leastP, 2*distuv.StudentsT{Sigma: 1, Nu: e.Freedom}.CDF(-math.Abs(e.Mean)/e.Error))
}

// Regress fits values by least squares to a mean and a multiple of each column. Columns are as long as values. It
// returns the estimates of the mean, where all columns are 0, and of the multiples. ok is false if a column depends
// linearly on other columns or is constant.
func Regress(values []float64, columns ...[]float64) (mean Estimate, slopes []Estimate, ok bool) {
	n := len(values)
	if len(columns) == 0 {
		mean, deviation := stat.MeanStdDev(values, nil)
		if n < 2 {
			return Estimate{Mean: mean}, nil, true
		}
		return Estimate{mean, stat.StdErr(deviation, float64(n)), float64(n - 1)}, nil, true
	}
	design := mat.NewDense(n, 1+len(columns), nil)
	for i := range n {
		design.Set(i, 0, 1)
		for j, c := range columns {
			design.Set(i, 1+j, c[i])
		}
	}
	var products, inverse mat.SymDense
	var cholesky mat.Cholesky
	var moments, found, rest mat.VecDense
	products.SymOuterK(1, design.T())
	seen := mat.NewVecDense(n, values)
	moments.MulVec(design.T(), seen)
	if !cholesky.Factorize(&products) || cholesky.SolveVecTo(&found, &moments) != nil ||
		cholesky.InverseTo(&inverse) != nil {
		return Estimate{}, nil, false
	}
	rest.MulVec(design, &found)
	rest.SubVec(seen, &rest)
	freedom := float64(n - 1 - len(columns))
	all := make([]Estimate, 1+len(columns))
	for i := range all {
		all[i] = Estimate{found.AtVec(i), math.Sqrt(mat.Dot(&rest, &rest) / freedom * inverse.At(i, i)), freedom}
	}
	return all[0], all[1:], true
}

// Quantile returns a quantile of the t distribution.
func Quantile(p, freedom float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(p)
}

// mostForWalsh bounds the memory of HodgesLehmann, which holds the means of all pairs.
const mostForWalsh = 2000

// HodgesLehmann returns the median of the means of all pairs of values, each value with itself included. Of more than
// mostForWalsh values it returns the median.
func HodgesLehmann(values []float64) float64 {
	means := slices.Clone(values)
	if len(values) <= mostForWalsh {
		for i := range values {
			for j := range i {
				means = append(means, (values[i]+values[j])/2)
			}
		}
	}
	slices.Sort(means)
	middle := len(means) / 2
	if len(means)%2 == 1 {
		return means[middle]
	}
	return (means[middle-1] + means[middle]) / 2
}
