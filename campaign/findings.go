package campaign

import (
	"context"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/tasks"
)

// Findings judges every compare of the file by what is stored, parsed anew. It runs nothing.
func (p *Project) Findings(ctx context.Context, plan *engine.Plan) ([]findings.Findings, error) {
	ends, err := p.ends(ctx, plan, p.Groups...)
	if err != nil {
		return nil, err
	}
	all := make([]findings.Findings, 0, len(p.Spec.Compares))
	for i := range p.Spec.Compares {
		found, err := p.CaseOf(&p.Spec.Compares[i]).Judge(ends)
		if err != nil {
			return nil, err
		}
		if err := p.Account(&p.Spec.Compares[i], ends, &found); err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return all, nil
}

// Samples are all numbers that are stored of the plan's benchmarks, whether a compare judges them or not.
func (p *Project) Samples(ctx context.Context, plan *engine.Plan) ([]sample.Measurement, error) {
	var rows []sample.Measurement
	for _, g := range p.Groups {
		_, all, err := p.stand(ctx, g, plan)
		if err != nil {
			return nil, err
		}
		for _, m := range g.Members {
			for _, row := range all.Measurements(m.Name) {
				row.Of = m.Bench.Address
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// stand finds out how the members of a group stand by what is stored.
func (p *Project) stand(ctx context.Context, g *tasks.Group, plan *engine.Plan) (*findings.Group, findings.Standings,
	error) {
	ends, err := p.ends(ctx, plan, g)
	if err != nil {
		return nil, nil, err
	}
	told := p.Told(g)
	all, err := told.Stand(ends)
	return told, all, err
}

// ends tells how what gathers from the blocks of groups stands by what is stored, and how the blocks themselves do,
// where not all was gathered.
func (p *Project) ends(ctx context.Context, plan *engine.Plan, groups ...*tasks.Group) (map[string]engine.End, error) {
	ends := map[string]engine.End{}
	find := func(at hclspec.Address) (stored bool, err error) {
		step, ok := plan.Step(at.String())
		if !ok {
			return false, nil
		}
		end, err := plan.End(ctx, p.Store, step)
		if err == nil {
			ends[end.Address] = tasks.WaitingEnd(end, p.WaitsFor(plan, step))
		}
		return end.Entry.Dir != "", err
	}
	for _, g := range groups {
		whole := true
		for _, m := range g.Members {
			stored, err := find(m.Bench.Address)
			if err != nil {
				return nil, err
			}
			whole = whole && stored
		}
		if whole {
			continue
		}
		for _, t := range g.Trials {
			if _, err := find(t.At); err != nil {
				return nil, err
			}
		}
	}
	return ends, nil
}
