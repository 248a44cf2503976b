package tasks

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// Paired is what was found when two sides were held against each other.
type Paired struct {
	Rows  []stats.Comparison
	Notes []string // what must be known beside them, a sentence each
}

// Pair holds one candidate against another of the same commit, whichever of them is the baseline, by what is stored:
// the rows of every benchmark that measures both in the same blocks. The rules are those of a compare that judges one
// of them; by says of which, nil: of the first.
func (p *drawing) Pair(ctx context.Context, plan *engine.Plan, candidate, against string, by *hclspec.Compare) (Paired,
	error) {
	var found Paired
	measured := false
	for _, g := range p.groups {
		one, other := g.member(candidate), g.member(against)
		if one == nil || other == nil || one == other {
			continue
		}
		measured = true
		rules := p.rulesFor(by, &found, *one, *other)
		if rules == nil {
			continue
		}
		told, all, err := p.stand(ctx, g, plan)
		if err != nil {
			return found, err
		}
		c := findings.Case{Compare: rules, Allow: p.Allow}
		found.Rows = append(found.Rows, c.Pair(told, all, one.name, other.name)...)
	}
	switch {
	case !measured:
		return found, fmt.Errorf("no benchmark measures %s and %s in the same blocks", candidate, against)
	case len(found.Rows) == 0:
		return found, fmt.Errorf("%s judges neither %s nor %s", by.Address, candidate, against)
	}
	return found, nil
}

// rulesFor is the compare by whose rules members of a benchmark are held against each other: that which is asked for,
// or the first of those that judge most of them. nil: it judges none. Without any, the rules are the defaults.
func (p *drawing) rulesFor(by *hclspec.Compare, found *Paired, sides ...member) *hclspec.Compare {
	judges := func(c *hclspec.Compare) (n int) {
		for _, m := range sides {
			if p.of[c.Address][m.bench.Address] && !(m.baseline && len(sides) > 1) {
				n++
			}
		}
		return n
	}
	if by != nil {
		if judges(by) == 0 {
			return nil
		}
		return by
	}
	var all []*hclspec.Compare
	most := 1
	for i := range p.Spec.Compares {
		c := &p.Spec.Compares[i]
		if n := judges(c); n > most {
			all, most = []*hclspec.Compare{c}, n
		} else if n == most {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return &hclspec.Compare{}
	}
	if slices.ContainsFunc(all, func(c *hclspec.Compare) bool { return ruleText(c) != ruleText(all[0]) }) {
		var texts []string
		for _, c := range all {
			texts = append(texts, c.Address.String()+" ("+ruleText(c)+")")
		}
		found.Notes = append(found.Notes,
			fmt.Sprintf("benchmark.%s is judged by several rules: %s. These rows are by the first; -compare=ADDRESS "+
				"takes another.", sides[0].bench.Address.Name, strings.Join(texts, ", ")))
	}
	return all[0]
}

// ruleText is what a compare says of its rules.
func ruleText(c *hclspec.Compare) string {
	var parts []string
	if c.Tie > 0 {
		parts = append(parts, fmt.Sprintf("tie %g %%", 100*c.Tie))
	}
	if c.Confidence > 0 {
		parts = append(parts, fmt.Sprintf("confidence %g %%", 100*c.Confidence))
	}
	if len(c.Metrics) > 0 {
		parts = append(parts, "metrics "+strings.Join(c.Metrics, " "))
	}
	return cmp.Or(strings.Join(parts, ", "), "tie 2 % or 5 %")
}
