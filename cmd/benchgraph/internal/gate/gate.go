// Package gate decides by the rows of a command whether it ends with an error: for outcomes and caveats that -fail-on
// names, and for rows that must not be compared.
package gate

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/stats"
)

// Gate is the flag -fail-on: outcomes and kinds of caveats that no row may have. The zero Gate accepts all rows.
type Gate []string

// Flag adds the flag to a command.
func (g *Gate) Flag(fs *flag.FlagSet) {
	fs.Var(g, "fail-on",
		"end with exit code 8 when a candidate has one of these `OUTCOMES`, or a caveat of a kind that is named: "+
			"loss,failed,wrong,wall_clock")
}

// String returns the flag as it was given.
func (g *Gate) String() string { return strings.Join(*g, ",") }

// Set adds outcomes and kinds of caveats, separated by commas. The flag may be given several times.
func (g *Gate) Set(text string) error {
	known := stats.CaveatKinds()
	for _, o := range stats.Outcomes() {
		known = append(known, string(o))
	}
	for word := range strings.SplitSeq(text, ",") {
		if !slices.Contains(known, word) {
			return fmt.Errorf("%q is neither an outcome nor a kind of caveat%s; known: %s", word,
				cli.Suggest(word, known), strings.Join(known, ", "))
		}
		*g = append(*g, word)
	}
	return nil
}

// names reports whether the gate refuses a row. Only primary metrics count: further metrics are exploratory.
func (g Gate) names(r stats.Comparison) bool {
	return r.Primary && (slices.Contains(g, string(r.Outcome)) ||
		slices.ContainsFunc(r.Caveats, func(c stats.Caveat) bool { return slices.Contains(g, c.Kind) }))
}

// Error reports that candidates have outcomes or caveats that -fail-on names.
type Error struct {
	gate Gate
	rows []stats.Comparison // not empty
}

// Error lists the rows, a line each.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "-fail-on=%s: %s", e.gate.String(), view.Count(len(e.rows), "row"))
	for i, r := range e.rows {
		if i == 20 {
			fmt.Fprintf(&b, "\nand %d more", len(e.rows)-i)
			break
		}
		fmt.Fprintf(&b, "\n%s: %s", r.Candidate, r.Outcome)
		if r.Blocks > 0 {
			fmt.Fprintf(&b, ", %s %s", r.Metric, view.Effect(r))
		} else if r.Reason != "" {
			fmt.Fprintf(&b, ": %s", r.Reason)
		}
		for _, c := range r.Caveats {
			if slices.Contains(e.gate, c.Kind) {
				fmt.Fprintf(&b, ", %s: %s", c.Kind, c.Text)
			}
		}
		if r.Benchmark != "" {
			fmt.Fprintf(&b, " (benchmark.%s, compare.%s)", r.Benchmark, r.Compare)
		} else {
			fmt.Fprintf(&b, " (compare.%s)", r.Compare)
		}
	}
	return b.String()
}

// NeedsCompare returns an error for a plan without a compare: such a plan has no rows for the gate.
func (g Gate) NeedsCompare(p *engine.Plan) error {
	if len(g) == 0 || slices.ContainsFunc(p.Steps, func(s engine.Step) bool { return s.Node.Kind == "compare" }) {
		return nil
	}
	return &cli.UsageError{Message: "-fail-on looks at the rows of compares, and none is selected",
		Remedy: "select a compare, as with -target='compare.*', or leave out -fail-on"}
}

// Check returns the error for rows that the gate refuses, or else for rows that must not be compared, or nil. If the
// gate names anything, lacking is returned in place of nil, since the rows may lack results.
func (g Gate) Check(rows []stats.Comparison, lacking error) error {
	caught := slices.DeleteFunc(slices.Clone(rows), func(r stats.Comparison) bool { return !g.names(r) })
	if len(caught) > 0 {
		return &Error{g, caught}
	}
	if err := Refusal(rows); err != nil || len(g) == 0 {
		return err
	}
	return lacking
}

// Refusal returns the error for rows that must not be compared; nil if there are none.
func Refusal(rows []stats.Comparison) error {
	var reasons []string
	for _, row := range rows {
		if row.Primary && row.Outcome == stats.NotComparable {
			reasons = append(reasons, row.Candidate+": "+row.Reason)
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return &stats.RefusedError{What: "not comparable", Reasons: reasons}
}
