package tasks

import (
	"context"

	"github.com/benchgraph/benchgraph/findings"
)

// Replica is what another class of machine measured of the same work.
type Replica struct {
	Class string              `json:"class"`
	Known *Known              `json:"known"`
	Found []findings.Findings `json:"-"`
}

// Replicas are what is stored of the plan's work for other classes than the one whose findings are shown, each judged
// by itself. With known, each Replica lists the results that its findings rest on.
func (p *Project) Replicas(ctx context.Context, shown []findings.Findings, known bool) ([]Replica, error) {
	classes, err := p.otherClasses(ctx)
	if err != nil {
		return nil, err
	}
	current := p.as
	var all []Replica
	for _, c := range classes {
		if current != nil && c.String() == current.String() {
			continue
		}
		other := p.on(c)
		plan, err := other.Plan(ctx, PlanOptions{AsIs: true})
		if err != nil {
			return nil, err
		}
		if some, _ := measured(plan); !some {
			continue
		}
		found, err := other.Findings(ctx, plan)
		if err != nil {
			return nil, err
		}
		found = sameCompares(found, shown)
		r := Replica{Class: c.String(), Found: found}
		if known {
			if r.Known, err = other.Known(ctx, plan, found); err != nil {
				return nil, err
			}
		}
		all = append(all, r)
	}
	return all, nil
}

// sameCompares are the findings of the compares that others are of.
func sameCompares(found, others []findings.Findings) (some []findings.Findings) {
	for _, f := range found {
		for _, o := range others {
			if f.Compare == o.Compare {
				some = append(some, f)
			}
		}
	}
	return some
}
