package campaign

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/tasks"
)

// join adds what a class says of other groups, where both can be of the same machine.
func join(c, other *tasks.Class) bool {
	if c.Hardware != other.Hardware {
		return false
	}
	for request, kinds := range other.GPUs {
		if own, known := c.GPUs[request]; known && !slices.Equal(own, kinds) {
			return false
		}
	}
	maps.Copy(c.GPUs, other.GPUs)
	return true
}

// AsMeasured plans to show how everything stands. Where nothing that is measured is stored for this machine's class, it
// is planned as on a machine of the class for which most is. The note says so, or that not all that is stored is shown.
func (p *Project) AsMeasured(ctx context.Context) (plan *engine.Plan, note string, err error) {
	plan, err = p.Plan(ctx, PlanOptions{AsIs: true})
	if err != nil {
		return nil, "", err
	}
	some, all := measured(plan)
	if all {
		return plan, "", nil
	}
	classes, err := p.otherClasses(ctx)
	switch {
	case err != nil || len(classes) == 0:
		return plan, "", err
	case some:
		return plan, "what machines of other classes measured is stored, too, and is not mixed with it: " +
			classes[0].String(), nil
	}
	other, there, err := p.elsewhere(ctx, classes)
	if other == nil || err != nil {
		return plan, "", err
	}
	p.Drawing, p.next = other.Drawing, other.next
	return there, "nothing is stored that machines of this class measured. What follows was measured by another one: " +
		p.As.String(), nil
}

// elsewhere plans the project as on a machine of the first of the classes for which something is stored of what is
// measured now. It returns nil if nothing is stored for any of them.
func (p *Project) elsewhere(ctx context.Context, classes []*tasks.Class) (*Project, *engine.Plan, error) {
	for _, c := range classes {
		other := p.on(c)
		plan, err := other.Plan(ctx, PlanOptions{AsIs: true})
		if err != nil {
			return nil, nil, err
		}
		if some, _ := measured(plan); some {
			return other, plan, nil
		}
	}
	return nil, nil, nil
}

// knowsLess reports whether reports of a plan for this machine's class know less than those for another one would:
// nothing of what is measured is stored for this one, and something for that.
func (p *Project) knowsLess(ctx context.Context, plan *engine.Plan) (bool, error) {
	if some, _ := measured(plan); some {
		return false, nil
	}
	classes, err := p.otherClasses(ctx)
	if err != nil || len(classes) == 0 {
		return false, err
	}
	other, _, err := p.elsewhere(ctx, classes)
	return other != nil, err
}

// on returns the project as on a machine of another class, with nothing planned yet.
func (p *Project) on(c *tasks.Class) *Project {
	other := *p
	other.Drawing, other.next = &tasks.Drawing{Facts: p.Facts.On(c)}, tasks.NewChoice()
	return &other
}

// measured says whether something of what is measured is stored, and whether all of it is.
func measured(plan *engine.Plan) (some, all bool) {
	all = true
	for i := range plan.Steps {
		s := &plan.Steps[i]
		if s.Node.Kind == "trial" || s.Node.Kind == "benchmark" {
			_, stored := s.Stored()
			some, all = some || stored, all && (stored || s.Action == engine.Cached || s.Action == engine.Skip)
		}
	}
	return some, all
}

// otherClasses are the classes of other machines for which blocks of the project's benchmarks are stored, whatever
// their keys were, that with the most of them first.
func (p *Project) otherClasses(ctx context.Context) ([]*tasks.Class, error) {
	ours := map[string]bool{}
	for i := range p.Spec.Benchmarks {
		ours["trial."+p.Spec.Benchmarks[i].Address.Name] = true
	}
	found, count := map[string]*tasks.Class{}, map[*tasks.Class]int{}
	isOurs := func(address string) bool {
		block, _, _ := strings.Cut(address, "[")
		return ours[block]
	}
	err := p.Store.List(ctx, isOurs, func(m cache.Meta) error {
		at, err := hclspec.ParseAddress(m.Address)
		if err != nil {
			return nil
		}
		c := tasks.ClassIn(at, m.Text)
		if c == nil || p.IsOurs(at, c) {
			return nil
		}
		// Until all is read, one is of one kind of devices: blocks of the same group may be of several.
		if known := found[c.String()]; known != nil {
			maps.Copy(known.GPUs, c.GPUs)
			c = known
		}
		found[c.String()] = c
		count[c]++
		return nil
	})
	var classes []*tasks.Class
	for _, c := range slices.SortedFunc(maps.Values(found), func(a, b *tasks.Class) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a.String(), b.String()))
	}) {
		if !slices.ContainsFunc(classes, func(larger *tasks.Class) bool { return join(larger, c) }) {
			classes = append(classes, c)
		}
	}
	return classes, err
}

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
	current := p.As
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

// planningPool is the pool that a plan asks what fits.
func (p *Project) planningPool() device.Pool {
	if p.Elsewhere != nil {
		return p.Elsewhere.Pool
	}
	return p.Pool
}

// postponed are the compares of which every block waits for a machine of the file, and their reports, by address: there
// is nothing to compare yet.
func (p *Project) postponed(plan *engine.Plan) map[string]string {
	waits := map[string]string{}
	if p.Elsewhere != nil || len(p.MachinesOfFile()) == 0 {
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
			if name := p.WaitsFor(plan, by); !ok || name == "" {
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

// Waits says, by address, why nodes that a plan for another machine is to run cannot be run on this one: they are
// measured, they are too large, this machine lacks something, or they need a node that waits.
func (p *Project) Waits(plan *engine.Plan) map[string]string {
	waits := map[string]string{}
	if p.Elsewhere == nil {
		return waits
	}
	for i := range plan.Steps {
		s := &plan.Steps[i]
		if s.Action != engine.Run {
			continue
		}
		if why := p.waitsFor(s.Node, waits); why != "" {
			waits[s.Node.Address] = why
		}
	}
	return waits
}

func (p *Project) waitsFor(n *engine.Node, waits map[string]string) string {
	if why := p.Apart(n); why != "" && n.Remote == nil {
		return why
	}
	for _, list := range [][]*engine.Node{n.Needs, n.Order, n.After} {
		for _, dep := range list {
			if waits[dep.Address] != "" {
				return fmt.Sprintf("needs %s, which waits", dep.Address)
			}
		}
	}
	if lacks := p.Lacking[n.Address]; lacks != nil {
		return lacks()
	}
	return ""
}
