package main

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

// gate is the flag -fail-on: the outcomes with which no candidate may end. The zero gate lets all through.
type gate []stats.Outcome

func failOnFlag(fs *flag.FlagSet, g *gate) {
	fs.Var(g, "fail-on",
		"end with exit code 8 when a candidate has one of these `OUTCOMES`: loss,failed,wrong,inconclusive")
}

func (g *gate) String() string {
	words := make([]string, len(*g))
	for i, o := range *g {
		words[i] = string(o)
	}
	return strings.Join(words, ",")
}

// Set takes outcomes with commas between them. The flag may be given several times.
func (g *gate) Set(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		var known []string
		for _, o := range stats.Outcomes() {
			known = append(known, string(o))
		}
		if !slices.Contains(known, word) {
			return fmt.Errorf("there is no outcome %q%s; known: %s", word, cli.Suggest(word, known),
				strings.Join(known, ", "))
		}
		*g = append(*g, stats.Outcome(word))
	}
	return nil
}

// gateError says that candidates ended as -fail-on forbids.
type gateError struct {
	gate gate
	rows []stats.Comparison // not empty
}

func (e *gateError) Error() string {
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
		fmt.Fprintf(&b, " (compare.%s)", r.Compare)
	}
	return b.String()
}

// needsCompare refuses a plan without a compare: the gate would let all through that it was to look at.
func (g gate) needsCompare(p *engine.Plan) error {
	if len(g) == 0 || slices.ContainsFunc(p.Steps, func(s engine.Step) bool { return s.Node.Kind == "compare" }) {
		return nil
	}
	return &cli.UsageError{Message: "-fail-on looks at the rows of compares, and none is selected",
		Remedy: "select a compare, as with -target='compare.*', or leave out -fail-on"}
}

// check returns the error for rows that the gate refuses, or else for rows that must not be compared, or nil. Only
// primary metrics count: further metrics are exploratory.
func (g gate) check(rows []stats.Comparison) error {
	var caught []stats.Comparison
	for _, r := range rows {
		if r.Primary && slices.Contains(g, r.Outcome) {
			caught = append(caught, r)
		}
	}
	if len(caught) > 0 {
		return &gateError{g, caught}
	}
	return refusal(rows)
}
