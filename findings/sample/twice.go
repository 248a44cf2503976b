package sample

import (
	"fmt"
	"math"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics"
)

// mostApart is how far two statements of one number may be from each other, beyond the digits that were cut off.
const mostApart = 0.005

// doubtFile doubts the numbers of a result file of which the standard output of the same run says otherwise: somebody
// else may have written the file since. Only what both say in one unit is held against each other.
func doubtFile(all *metrics.Result, parser metrics.Parser, spec hclspec.Metrics, c hclspec.Command, dir string) {
	if all.Format == "" || all.Format == "json" { // the paths of two documents have nothing to do with each other
		return
	}
	printed, err := read(parser, "", c, dir)
	if err != nil || printed.Format == "" || printed.Format == "json" {
		return // the standard output holds no result
	}
	for _, s := range all.Samples {
		other, ok := metrics.Find(printed.Samples, s.Metric)
		if !ok || other.Unit != s.Unit || printed.Doubts[s.Metric] != "" || sameNumber(s, other) {
			continue
		}
		why := fmt.Sprintf("%s is %.6g in %s, and %.6g on the standard output of the same run", s.Metric, s.Value,
			spec.File, other.Value)
		if all.Doubts == nil {
			all.Doubts = map[string]string{}
		}
		all.Doubts[s.Metric] = why
		all.Warnings = append(all.Warnings, metrics.Warning{Kind: metrics.Repeated, Metric: s.Metric, Text: why})
	}
}

// sameNumber says whether two samples are one number, of which less digits may have been printed in one place.
func sameNumber(a, b metrics.Sample) bool {
	apart := math.Abs(a.Value - b.Value)
	return apart <= mostApart*max(math.Abs(a.Value), math.Abs(b.Value)) || apart <= lastDigit(a.Printed) ||
		apart <= lastDigit(b.Printed)
}

// lastDigit is what one in the last digit of a printed number stands for; 0: its digits do not say.
func lastDigit(printed string) float64 {
	_, decimals, _ := strings.Cut(printed, ".")
	if printed == "" || strings.Trim(decimals, "0123456789") != "" {
		return 0
	}
	return math.Pow10(-len(decimals))
}
