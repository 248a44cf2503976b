package doubt

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/stats/inference"
)

const (
	// ratio of the candidate's standard deviation to the baseline's above which it is doubted, and the test's
	// confidence
	mostSpread, spreadConfidence = 3, 0.99
)

// Spread returns a caveat if the candidate's own noise keeps a row inconclusive. The caveat tells which way the figures
// go: noise can hide a loss.
func Spread(row stats.Comparison, s, base *group.Standing) []stats.Caveat {
	if row.Outcome != stats.Inconclusive {
		return nil
	}
	var own, theirs []float64 // logarithms by block
	values, against := s.InUnit(row.Metric, base.Units[row.Metric]), base.Series[row.Metric]
	for _, block := range slices.Sorted(maps.Keys(values)) {
		if v, other := values[block], against[block]; v > 0 && other > 0 {
			own, theirs = append(own, math.Log(v)), append(theirs, math.Log(other))
		}
	}
	n := len(own)
	if n < stats.FewestBlocks {
		return nil
	}
	x, y, both := moments(own, theirs)
	if x <= mostSpread*mostSpread*y {
		return nil
	}
	// Pitman and Morgan: two variances are equal if the sums and the differences of the pairs are not correlated.
	r := (x - y) / math.Sqrt((x+y)*(x+y)-4*both*both)
	freedom := float64(n - 2)
	if t := r * math.Sqrt(freedom/max(1e-12, 1-r*r)); t < inference.Quantile(0.5+spreadConfidence/2, freedom) {
		return nil
	}
	return []stats.Caveat{{Kind: stats.CaveatNoVerdict, Text: fmt.Sprintf(
		"%s varies by ±%.2g %% from block to block for %s, and by ±%.2g %% for %s: the candidate's own noise leaves "+
			"the verdict open%s", row.Metric, 100*math.Sqrt(x), s.Title(), 100*math.Sqrt(y), base.Title(),
		Raw(row.Metric, s, base))}}
}

// moments returns the variances of two series and their covariance.
func moments(a, b []float64) (x, y, both float64) {
	n := float64(len(a))
	var meanA, meanB float64
	for i := range a {
		meanA, meanB = meanA+a[i]/n, meanB+b[i]/n
	}
	for i := range a {
		x, y = x+(a[i]-meanA)*(a[i]-meanA)/(n-1), y+(b[i]-meanB)*(b[i]-meanB)/(n-1)
		both += (a[i] - meanA) * (b[i] - meanB) / (n - 1)
	}
	return x, y, both
}

// Raw returns the end of the reason of a row without a verdict: which way the printed numbers go; empty: they have no
// common unit, or do not differ.
func Raw(metric string, s, base *group.Standing) string {
	own, theirs := group.Mean(s.InUnit(metric, base.Units[metric])), group.Mean(base.Series[metric])
	better, known := sample.Better(base.Bench.Metrics, metric, base.Units[metric])
	if !known || s.Clash[metric] != "" || base.Clash[metric] != "" || own <= 0 || theirs <= 0 || own == theirs {
		return ""
	}
	way := "worse"
	if (own > theirs) == (better == stats.Higher) {
		way = "better"
	}
	return fmt.Sprintf("; by the printed numbers, %s is %s: %s on average, against %s", metric, way,
		printed(own, base.Units[metric]), printed(theirs, base.Units[metric]))
}

func printed(v float64, unit string) string {
	return strings.TrimSpace(fmt.Sprintf("%.4g %s", v, unit))
}
