package hclspec

import (
	"maps"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/benchgraph/benchgraph/hclspec/internal/project"
)

// Check is the comparison of the results of candidates with the baseline's. At least one of Command and Same is set.
type Check struct {
	Command Command // run after the measured one, in an empty directory or in the tree of Source
	Source  Address // zero: an empty directory
	Same    []Same
	Timeout time.Duration
}

// Same names files that must agree.
type Same struct {
	Pattern   string  // doublestar, below $OUT
	Tolerance float64 // largest relative difference of two numbers
}

// Required is a number that every output must have.
type Required struct {
	Metric string
	Value  float64
}

// check reads the check block: conditions on the results of candidates, whatever their speed.
func (r reader) check(owner Block) *Check {
	b := r.Block.Block("check")
	if b == nil {
		return nil
	}
	r = r.nested(b)
	c := &Check{Command: r.filledIn("command"), Source: r.client("source", owner), Same: r.same(),
		Timeout: r.Duration("timeout", time.Hour)}
	if !r.Has("command") && !r.Has("same") && !b.Misspelt() {
		r.Fail(b.Range, "Check without anything to check",
			"A check block needs a command that fails when something is wrong, files that must be the same, or both.")
	}
	return c
}

// same reads the files that must agree, by pattern.
func (r reader) same() (list []Same) {
	const one = "{ tolerance = NUMBER }"
	values := r.Map("same", cty.ObjectWithOptionalAttrs(map[string]cty.Type{"tolerance": cty.Number},
		[]string{"tolerance"}), "a map of files to "+one, one)
	for _, pattern := range slices.Sorted(maps.Keys(values)) {
		s := Same{Pattern: pattern}
		if v := values[pattern]; v.IsWhollyKnown() && !v.IsNull() && !v.GetAttr("tolerance").IsNull() {
			s.Tolerance, _ = v.GetAttr("tolerance").AsBigFloat().Float64()
		}
		if s.Tolerance < 0 || s.Tolerance >= 1 {
			r.Fail(r.At("same"), "Number out of range",
				"The tolerance of %q must be at least 0 and less than 1, not %g.", pattern, s.Tolerance)
		}
		if err := project.CheckPattern(pattern); err != nil {
			r.Fail(r.At("same"), "Invalid pattern", "%q is no pattern of files: %s.", pattern, err)
		}
		list = append(list, s)
	}
	return list
}

// counts returns the numbers that are read from every output, whatever its metrics are.
func counts() []string {
	return []string{"completed", "successful_requests", "failed", "failed_requests", "total_input_tokens",
		"total_output_tokens"}
}

// required reads the numbers that each output must have. If metric blocks are the only metrics, they must declare each
// number that is no count.
func (r reader) required(names []string, own bool) []Required {
	var list []Required
	values := r.Map("require", cty.Number, "a map of metrics to numbers", "a number")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !values[name].IsKnown() {
			continue
		}
		if values[name].IsNull() {
			r.Fail(r.At("require"), "Missing number",
				"require has no number for %q. Leave the metric out where nothing is required.", name)
			continue
		}
		v, _ := values[name].AsBigFloat().Float64()
		if known := append(slices.Clip(names), counts()...); len(names) > 0 && own && !slices.Contains(known, name) {
			r.Fail(r.At("require"), "Unknown metric",
				"No metric block declares %q, which require names, and it is no count of requests or tokens.%s", name,
				diag.Choices(name, known))
		}
		list = append(list, Required{Metric: name, Value: v})
	}
	return list
}
