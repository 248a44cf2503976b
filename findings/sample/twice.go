package sample

import (
	"fmt"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/number"
)

// doubtFile doubts numbers of a result file that differ from those on the standard output of the same run: another
// program may have written the file since. Only numbers with the same unit in both are compared.
func doubtFile(all *metrics.Result, parser metrics.Parser, spec hclspec.Metrics, c hclspec.Command, dir string) {
	if all.Format == "" || all.Format == "json" { // equal paths into two documents may be different metrics
		return
	}
	printed, err := read(parser, "", c, dir)
	if err != nil || printed.Format == "" || printed.Format == "json" {
		return // the standard output holds no result
	}
	for _, s := range all.Samples {
		other, ok := metrics.Find(printed.Samples, s.Metric)
		if !ok || other.Unit != s.Unit || printed.Doubts[s.Metric] != "" ||
			number.Same(s.Value, s.Printed, other.Value, other.Printed) {
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
