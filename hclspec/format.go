package hclspec

import (
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/hclspec/format"
	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
)

// given reports a metric that the format of the block cannot have.
func (r reader) given(attr, of, metric string) {
	if format.Gives(of, metric) {
		return
	}
	names := format.Metrics(of)
	choices := diag.Suggest(metric, names)
	if m := format.Meant(of, metric); m != "" && choices == "" {
		choices = fmt.Sprintf(" Did you mean %q?", m)
	}
	if choices == "" {
		choices = diag.Choices(metric, names)
	}
	r.Fail(r.At(attr), "Unknown metric",
		"The output of %s has no metric %q.%s A metric of your own has a metric block.",
		of, metric, choices)
}

// gives reports the metrics of the block that no output of its format has.
func (r reader) gives(m Metrics, own []string) {
	if m.Format == "regex" && len(own) == 0 {
		r.Fail(r.At("format"), "Nothing to read", "format = \"regex\" reads metric blocks, and there is none.")
		return
	}
	if m.Primary != "" && !slices.Contains(own, m.Primary) {
		r.given("primary", m.Format, m.Primary)
	}
	for _, want := range m.Require {
		if name := want.Metric; name != "completed" && name != "failed" && !slices.Contains(own, name) {
			r.given("require", m.Format, name)
		}
	}
}
