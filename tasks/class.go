package tasks

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
)

// machineClass is what the keys of trials say of a machine.
type machineClass struct {
	hardware string
	gpus     map[string][]string // by request: the kinds of its devices that may serve it
}

// String is the class for people.
func (c *machineClass) String() string {
	kinds := map[string]bool{}
	for _, list := range c.gpus {
		for _, kind := range list {
			kinds[kind] = true
		}
	}
	return strings.Join(append(sortedKeys(kinds), c.hardware), "; ")
}

// class is that of this machine, or of another one that is looked at as if it were this.
func (p *Project) class() string {
	if p.as != nil {
		return p.as.hardware
	}
	return p.hardware
}

// gpuClasses are the kinds of devices of the class that may serve a request.
func (p *Project) gpuClasses(g *hclspec.GPUs) []string {
	if p.as != nil {
		return p.as.gpus[gpuRequest(g)]
	}
	return p.kinds(device.GPUs{Memory: g.Memory, Model: p.model(g.Model)})
}

// gpuValues are a request as a key says it.
func gpuValues(g *hclspec.GPUs) []string {
	return []string{strconv.Itoa(g.Count), strconv.FormatInt(g.Memory, 10), g.Model}
}

func gpuRequest(g *hclspec.GPUs) string { return strings.Join(gpuValues(g), "\x00") }

// classIn reads the class of the machine back from the key text of a trial; nil when it is none.
func classIn(text string) *machineClass {
	lines, err := cache.ParseText(text)
	if err != nil {
		return nil
	}
	c := &machineClass{gpus: map[string][]string{}}
	request := ""
	for _, l := range lines {
		switch {
		case l.Label == "hardware" && len(l.Values) == 1:
			c.hardware = l.Values[0]
		case l.Label == "gpus":
			request = strings.Join(l.Values, "\x00")
		case l.Label == "gpu classes":
			c.gpus[request] = l.Values
		}
	}
	if c.hardware == "" {
		return nil
	}
	return c
}

// AsMeasured plans to show how everything stands. Where nothing that is measured is stored for this machine's class, it is planned
// as on a machine of the class for which most is. The note says so, or that not all that is stored is shown.
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
		return plan, "what machines of other classes measured is stored, too, and is not mixed with it: " + classes[0].String(), nil
	}
	other, c, err := p.elsewhere(ctx, classes)
	if err != nil {
		return nil, "", err
	}
	if other != nil {
		return other, "nothing is stored that machines of this class measured. What follows was measured by another one: " + c.String(), nil
	}
	p.lookAs(nil)
	plan, err = p.Plan(ctx, PlanOptions{AsIs: true})
	return plan, "", err
}

// elsewhere plans as on a machine of the first of the classes for which something is stored of what is measured now; nil when there
// is nothing for any.
func (p *Project) elsewhere(ctx context.Context, classes []*machineClass) (*engine.Plan, *machineClass, error) {
	for _, c := range classes {
		p.lookAs(c)
		plan, err := p.Plan(ctx, PlanOptions{AsIs: true})
		if err != nil {
			return nil, nil, err
		}
		if some, _ := measured(plan); some {
			return plan, c, nil
		}
	}
	return nil, nil, nil
}

// knowsLess says whether reports of a plan for this machine's class know less than those for another one would: nothing of what is
// measured is stored for this one, and something for that.
func (p *Project) knowsLess(ctx context.Context, plan *engine.Plan) (bool, error) {
	if some, _ := measured(plan); some {
		return false, nil
	}
	classes, err := p.otherClasses(ctx)
	if err != nil || len(classes) == 0 {
		return false, err
	}
	blocks, dropped := p.blocks, p.dropped
	other, _, err := p.elsewhere(ctx, classes)
	p.lookAs(nil)
	p.blocks, p.dropped = blocks, dropped
	if err == nil {
		_, err = p.graph(ctx) // groups are again those of the plan
	}
	return other != nil, err
}

// lookAs has the next plan made as on a machine of another class; nil: as on this.
func (p *Project) lookAs(c *machineClass) {
	p.as, p.blocks, p.dropped = c, map[string]int{}, map[string]absence{}
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

// otherClasses are the classes of other machines for which blocks of the project's benchmarks are stored, whatever their keys were,
// that with the most of them first.
func (p *Project) otherClasses(ctx context.Context) ([]*machineClass, error) {
	ours := map[string]bool{}
	for i := range p.Spec.Benchmarks {
		ours["trial."+p.Spec.Benchmarks[i].Address.Name] = true
	}
	found, count := map[string]*machineClass{}, map[string]int{}
	isOurs := func(address string) bool {
		block, _, _ := strings.Cut(address, "[")
		return ours[block]
	}
	err := p.Store.List(ctx, isOurs, func(m cache.Meta) error {
		if c := classIn(m.Text); c != nil && !p.isOurs(c) {
			found[c.String()] = c
			count[c.String()]++
		}
		return nil
	})
	return slices.SortedFunc(maps.Values(found), func(a, b *machineClass) int {
		return cmp.Or(cmp.Compare(count[b.String()], count[a.String()]), strings.Compare(a.String(), b.String()))
	}), err
}

// isOurs says whether a class is that of this machine.
func (p *Project) isOurs(c *machineClass) bool {
	if c.hardware != p.hardware {
		return false
	}
	for i := range p.Spec.Benchmarks {
		if g := p.Spec.Benchmarks[i].GPUs; g != nil {
			if kinds, asked := c.gpus[gpuRequest(g)]; asked && !slices.Equal(kinds, p.gpuClasses(g)) {
				return false
			}
		}
	}
	return true
}
