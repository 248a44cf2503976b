package tasks

import (
	"context"
	"fmt"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// Pair holds one candidate against another of the same commit, whichever of them is the baseline, by what is stored: the
// rows of every benchmark that measures both in the same blocks. The margins are those of the first compare that covers
// the benchmark.
func (p *Project) Pair(ctx context.Context, plan *engine.Plan, candidate, against string) ([]stats.Comparison, error) {
	var rows []stats.Comparison
	for _, g := range p.groups {
		one, other := g.member(candidate), g.member(against)
		if one == "" || other == "" || one == other {
			continue
		}
		all, err := p.stand(ctx, g, plan)
		if err != nil {
			return nil, err
		}
		rows = append(rows, p.judgePair(p.rulesFor(g), g, all[one], all[other])...)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no benchmark measures %s and %s in the same blocks", candidate, against)
	}
	return rows, nil
}

// Samples are all numbers that are stored of the plan's benchmarks, whether a compare judges them or not.
func (p *Project) Samples(ctx context.Context, plan *engine.Plan) ([]Measurement, error) {
	var rows []Measurement
	for _, g := range p.groups {
		all, err := p.stand(ctx, g, plan)
		if err != nil {
			return nil, err
		}
		for _, m := range g.members {
			for _, row := range all[m.name].rows {
				row.Of = m.bench.Address
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

func (p *Project) judgePair(c *hclspec.Compare, g *group, s, base *standing) []stats.Comparison {
	method := map[string]stats.Methodology{}
	if row, decided := p.withoutFigures(c, g, s, base, method); decided {
		return []stats.Comparison{row}
	}
	rows, _ := p.verdicts(c, g, []*standing{s}, base, method)
	return rows
}

// rulesFor is the first compare that covers the group; one without a name and with the defaults when there is none.
func (p *Project) rulesFor(g *group) *hclspec.Compare {
	for i := range p.Spec.Compares {
		if p.isAbout(&p.Spec.Compares[i], g) {
			return &p.Spec.Compares[i]
		}
	}
	return &hclspec.Compare{}
}

// member is the name of the group's member that measures the candidate; empty when there is none.
func (g *group) member(candidate string) string {
	for _, m := range g.members {
		if m.candidate == candidate {
			return m.name
		}
	}
	return ""
}
