package hclspec

import (
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

func compareSchema() *eval.Schema {
	return &eval.Schema{Kind: "compare", Label: true, Key: []string{"of", "tie", "confidence", "metrics"}, Free: []string{"for_each"}}
}

func decodeCompare(r reader, b Block) {
	r.need("of", "the benchmarks whose candidates are judged, for instance of = [benchmark.NAME]")
	c := Compare{
		Block: b, Of: r.refs("of", "benchmark"), Tie: r.fraction("tie", 0.5, 0), Confidence: r.fraction("confidence", 1, 0.95),
		Metrics: r.strs("metrics"),
	}
	r.notEmpty("of", len(c.Of))
	r.l.spec.Compares = append(r.l.spec.Compares, c)
}

// notEmpty refuses a list that was written down empty; one that is empty because a collection is, is only told of.
func (r reader) notEmpty(name string, n int) {
	v, ok := r.value(name)
	switch {
	case n > 0 || !ok:
	case v.CanIterateElements() && v.LengthInt() == 0:
		r.fail(r.at(name), "Nothing to look at", "%s must name something.", name)
	case v.CanIterateElements():
		r.l.scope.Diags.Warn(r.instance, r.at(name), "Nothing to look at", "What "+name+" names has no instances.")
	}
}

func reportSchema() *eval.Schema {
	return &eval.Schema{Kind: "report", Label: true, Key: []string{"of", "formats", "dir"}, Free: []string{"for_each"}}
}

func decodeReport(r reader, b Block) {
	r.need("of", "the comparisons that it shows, for instance of = [compare.NAME]")
	report := Report{Block: b, Of: r.refs("of", "compare"), Formats: r.strs("formats"), Dir: r.inside("dir", "report")}
	for i, format := range report.Formats {
		r.oneOf("formats", r.atItem("formats", i), format, []string{"html", "markdown", "json", "csv", "benchfmt", "junit"})
	}
	if !r.has("formats") {
		report.Formats = []string{"markdown", "json"}
	}
	r.notEmpty("of", len(report.Of))
	r.l.spec.Reports = append(r.l.spec.Reports, report)
}
