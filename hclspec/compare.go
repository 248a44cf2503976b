package hclspec

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/hclspec/recorded"
)

func compareSchema() *eval.Schema {
	return &eval.Schema{Kind: "compare", Label: true, Key: []string{"of", "tie", "confidence", "metrics"},
		Free: []string{"for_each"}}
}

func decodeCompare(r reader, b Block) {
	r.Need("of", "the benchmarks whose candidates are judged, for instance of = [benchmark.NAME]")
	c := Compare{
		Block: b, Of: r.refs("of", "benchmark"), Tie: r.Fraction("tie", 0, 0.5, 0),
		Confidence: r.Fraction("confidence", 0.5, 1, 0.95),
		Metrics:    r.Strs("metrics"),
	}
	r.notEmpty("of", len(c.Of))
	r.l.spec.Compares = append(r.l.spec.Compares, c)
}

// notEmpty refuses a list that is written as empty. It only warns of a list of collections that are all empty.
func (r reader) notEmpty(name string, n int) {
	r.Distinct(name)
	v, ok := r.Value(name)
	switch {
	case n > 0 || !ok:
	case v.CanIterateElements() && v.LengthInt() == 0:
		r.Fail(r.At(name), "Empty list", "%s must name something.", name)
	case v.CanIterateElements() && leaves(v) == 0:
		r.Scope.Diags.Warn(r.Instance, r.At(name), "Empty list", name+" names blocks that have no instances.")
	}
}

// leaves counts the items of a list and of the collections in it, right or wrong.
func leaves(v cty.Value) int {
	if !v.CanIterateElements() {
		return 1
	}
	n := 0
	for _, item := range v.Elements() {
		n += leaves(item)
	}
	return n
}

func reportSchema() *eval.Schema {
	return &eval.Schema{Kind: "report", Label: true, Key: []string{"of", "formats", "recorded"},
		Free: []string{"for_each", "dir"}}
}

func decodeReport(r reader, b Block) {
	r.Need("of", "the comparisons that it shows, for instance of = [compare.NAME]")
	report := Report{Block: b, Of: r.refs("of", "compare"), Formats: r.Strs("formats"), Dir: r.Inside("dir", "report")}
	for i, format := range report.Formats {
		r.OneOf("formats", r.AtItem("formats", i), format,
			[]string{"html", "markdown", "json", "csv", "benchfmt", "junit", "github", "github-action-benchmark", "bmf",
				"pytorch", "trace", "otel"})
	}
	if !r.Has("formats") {
		report.Formats = []string{"markdown", "json"}
	}
	report.Recorded = r.Strs("recorded")
	for i, text := range report.Recorded {
		if _, err := recorded.Read([]byte(text)); err != nil {
			r.Fail(r.AtItem("recorded", i), "Not recorded results",
				"%s. Name a file that benchgraph import -results wrote: recorded = [file(\"FILE\")].", err)
		}
	}
	r.notEmpty("of", len(report.Of))
	r.l.spec.Reports = append(r.l.spec.Reports, report)
}
