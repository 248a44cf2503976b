package campaign

import (
	"context"
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/tasks"
)

// AsMeasured plans the project to show how everything stands. If the store has no measurement of this machine's class,
// the plan is for the class with the most stored blocks, and the note says so. The note also says when the plan leaves
// out results of other classes.
func (p *Project) AsMeasured(ctx context.Context) (plan *engine.Plan, note string, err error) {
	plan, err = p.Plan(ctx, PlanOptions{AsIs: true})
	if err != nil {
		return nil, "", err
	}
	some, all := p.Stored(plan).Measured()
	if all {
		return plan, "", nil
	}
	classes, err := results.OtherClasses(ctx, p.Facts)
	switch {
	case err != nil || len(classes) == 0:
		return plan, "", err
	case some:
		return plan, "results of other classes of machines are stored, too, and are left out: " +
			classes[0].String(), nil
	}
	stored, err := p.elsewhere(ctx, classes)
	if stored == nil || err != nil {
		return plan, "", err
	}
	p.Drawing, p.next = stored.Drawing, tasks.NewChoice()
	return stored.Plan, "the store has no results of machines of this class. The following ones are of " +
		"another class: " + p.As.String(), nil
}

// knowsLess reports whether reports of a plan for this machine's class know less than reports for another class: the
// store has measurements of that class, and none of this machine's.
func (p *Project) knowsLess(ctx context.Context, plan *engine.Plan) (bool, error) {
	if some, _ := p.Stored(plan).Measured(); some {
		return false, nil
	}
	classes, err := results.OtherClasses(ctx, p.Facts)
	if err != nil {
		return false, err
	}
	stored, err := p.elsewhere(ctx, classes)
	return stored != nil, err
}

// elsewhere returns the stored results of the first class that has results of blocks that the file measures now; nil if
// no class has any.
func (p *Project) elsewhere(ctx context.Context, classes []*tasks.Class) (stored *results.Stored, err error) {
	for _, c := range classes {
		if stored, err = p.on(ctx, c); stored != nil || err != nil {
			break
		}
	}
	return stored, err
}

// on plans the project as on a machine of another class. It returns nil if the store has no result of that class for
// the blocks that the file measures now.
func (p *Project) on(ctx context.Context, c *tasks.Class) (*results.Stored, error) {
	other := *p
	other.Drawing, other.next = &tasks.Drawing{Facts: p.Facts.On(c)}, tasks.NewChoice()
	plan, err := other.Plan(ctx, PlanOptions{AsIs: true})
	if err != nil {
		return nil, err
	}
	stored := other.Stored(plan)
	if some, _ := stored.Measured(); !some {
		return nil, nil
	}
	return stored, nil
}

// Foreign returns the stored results of the project for each class of machines except that of its drawing, each with a
// plan for its class.
func (p *Project) Foreign(ctx context.Context) ([]*results.Stored, error) {
	classes, err := results.OtherClasses(ctx, p.Facts)
	if err != nil {
		return nil, err
	}
	var all []*results.Stored
	for _, c := range classes {
		if p.As != nil && c.String() == p.As.String() {
			continue
		}
		stored, err := p.on(ctx, c)
		if err != nil {
			return nil, err
		}
		if stored != nil {
			all = append(all, stored)
		}
	}
	return all, nil
}

// Replicas returns the findings of other classes of machines about the compares in shown. Each class is judged by
// itself. With known, each Replica also lists the results that its findings rest on.
func (p *Project) Replicas(ctx context.Context, shown []findings.Findings, known bool) ([]results.Replica, error) {
	foreign, err := p.Foreign(ctx)
	if err != nil {
		return nil, err
	}
	var all []results.Replica
	for _, stored := range foreign {
		found, err := stored.Findings(ctx)
		if err != nil {
			return nil, err
		}
		r := results.Replica{Class: stored.As.String(), Found: slices.DeleteFunc(found, func(f findings.Findings) bool {
			return !slices.ContainsFunc(shown, func(other findings.Findings) bool { return other.Compare == f.Compare })
		})}
		if known {
			if r.Known, err = stored.Known(ctx, r.Found); err != nil {
				return nil, err
			}
		}
		all = append(all, r)
	}
	return all, nil
}

// postponed returns, by address, why compares and their reports wait: every block of the compare waits for a machine of
// the file, so there is nothing to compare yet.
func postponed(d *tasks.Drawing, plan *engine.Plan) map[string]string {
	waits := map[string]string{}
	if d.Elsewhere != nil || len(d.MachinesOfFile()) == 0 {
		return waits
	}
	for i := range plan.Steps {
		s := &plan.Steps[i]
		if s.Action != engine.Run {
			continue
		}
		all, why := 0, ""
		for _, dep := range s.Node.After {
			by, ok := plan.Step(dep.Address)
			if name := d.WaitsFor(plan, by); !ok || name == "" {
				break
			} else if all++; all == len(s.Node.After) {
				why = "waits for machine " + name
			}
		}
		for _, dep := range s.Node.Needs {
			if waits[dep.Address] != "" {
				why = fmt.Sprintf("needs %s, which waits", dep.Address)
			}
		}
		if why != "" {
			waits[s.Node.Address] = why
		}
	}
	return waits
}

// Waits returns, by address, why nodes that are planned for another machine cannot run on this one: they are measured,
// they are too large, this machine lacks something, or they need a node that waits.
func (p *Project) Waits(ctx context.Context, plan *engine.Plan) map[string]string {
	waits := map[string]string{}
	if len(p.Others()) == 0 {
		return waits
	}
	for i := range plan.Steps {
		s := &plan.Steps[i]
		if s.Action != engine.Run {
			continue
		}
		if why := waitsFor(ctx, p.Drawing, s.Node, waits); why != "" {
			waits[s.Node.Address] = why
		}
	}
	return waits
}

// waitsFor returns why a node waits; "" if it does not wait.
func waitsFor(ctx context.Context, d *tasks.Drawing, n *engine.Node, waits map[string]string) string {
	if n.Remote == nil {
		if why := d.Apart(n); why != "" {
			return why
		}
	}
	for _, dep := range slices.Concat(n.Needs, n.Order, n.After) {
		if waits[dep.Address] != "" {
			return fmt.Sprintf("needs %s, which waits", dep.Address)
		}
	}
	if lacks := d.Lacking[n.Address]; lacks != nil {
		return lacks(ctx)
	}
	return ""
}
