package tasks

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
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
	gpus     map[string][]string // by gpuRequest: the kind of its devices that serves the blocks of a group
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
func (p *facts) class() string {
	if p.as != nil {
		return p.as.hardware
	}
	return p.hardware
}

// gpuClasses is the kind of devices that serves the blocks of a commit, in a list as keys have it: nothing where no
// kind can. What another kind measures is another result.
func (p *facts) gpuClasses(trial hclspec.Address, g *hclspec.GPUs) []string {
	if p.as != nil {
		return p.as.gpus[gpuRequest(trial, g)]
	}
	group, _ := trial.Trial()
	kind, n := p.kindFor(commitOf(group), device.GPUs{Count: g.Count, Memory: g.Memory, Model: p.model(g.Model)})
	if n == 0 {
		return nil
	}
	return []string{kind}
}

// kindFor chooses one of the kinds of devices that can serve a request, and says how many devices of it there are. All
// blocks of a commit get the same one, in each plan and from each process: each kind draws a number for the commit, and
// the highest counts. So a kind that comes or goes moves no commit between the others. A device that is away, such as
// one that hangs, moves none unless too few of its kind are left; where too few are left of each kind, the draw is as
// if they were there, so that what was measured is still found.
func (p *facts) kindFor(commit string, want device.GPUs) (chosen string, n int) {
	count := map[string]int{}
	most := 0
	for _, d := range p.devices() {
		if want.Suits(d) {
			kind := device.KindOf(d)
			count[kind]++
			most = max(most, count[kind])
		}
	}
	var highest [sha256.Size]byte
	for _, kind := range sortedKeys(count) {
		drawn := sha256.Sum256([]byte(commit + "\x00" + kind))
		if count[kind] >= min(want.Count, most) && bytes.Compare(drawn[:], highest[:]) > 0 {
			chosen, n, highest = kind, count[kind], drawn
		}
	}
	return chosen, n
}

// gpuValues are a request as a key says it.
func gpuValues(g *hclspec.GPUs) []string {
	return []string{strconv.Itoa(g.Count), strconv.FormatInt(g.Memory, 10), g.Model}
}

// gpuRequest names what a machineClass knows of: a group of a benchmark, and what its blocks ask for.
func gpuRequest(trial hclspec.Address, g *hclspec.GPUs) string {
	return groupRequest(trial, gpuValues(g))
}

func groupRequest(trial hclspec.Address, values []string) string {
	group, _ := trial.Trial()
	return strings.Join(append([]string{trial.Name, group}, values...), "\x00")
}

// classIn reads the class of the machine back from the key text of a trial; nil when it is none.
func classIn(trial hclspec.Address, text string) *machineClass {
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
			request = groupRequest(trial, l.Values)
		case l.Label == "gpu classes":
			c.gpus[request] = l.Values
		}
	}
	if c.hardware == "" {
		return nil
	}
	return c
}

// join adds what a class says of other groups, where both can be of the same machine.
func (c *machineClass) join(other *machineClass) bool {
	if c.hardware != other.hardware {
		return false
	}
	for request, kinds := range other.gpus {
		if own, known := c.gpus[request]; known && !slices.Equal(own, kinds) {
			return false
		}
	}
	maps.Copy(c.gpus, other.gpus)
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
	p.drawing, p.next = other.drawing, other.next
	return there, "nothing is stored that machines of this class measured. What follows was measured by another one: " +
		p.as.String(), nil
}

// elsewhere plans the project as on a machine of the first of the classes for which something is stored of what is
// measured now. It returns nil if nothing is stored for any of them.
func (p *Project) elsewhere(ctx context.Context, classes []*machineClass) (*Project, *engine.Plan, error) {
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
func (p *Project) on(c *machineClass) *Project {
	other := *p
	other.drawing, other.next = &drawing{facts: p.facts.on(c)}, newChoice()
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
func (p *facts) otherClasses(ctx context.Context) ([]*machineClass, error) {
	ours := map[string]bool{}
	for i := range p.Spec.Benchmarks {
		ours["trial."+p.Spec.Benchmarks[i].Address.Name] = true
	}
	found, count := map[string]*machineClass{}, map[*machineClass]int{}
	isOurs := func(address string) bool {
		block, _, _ := strings.Cut(address, "[")
		return ours[block]
	}
	err := p.Store.List(ctx, isOurs, func(m cache.Meta) error {
		at, err := hclspec.ParseAddress(m.Address)
		if err != nil {
			return nil
		}
		c := classIn(at, m.Text)
		if c == nil || p.isOurs(at, c) {
			return nil
		}
		// Until all is read, one is of one kind of devices: blocks of the same group may be of several.
		if known := found[c.String()]; known != nil {
			maps.Copy(known.gpus, c.gpus)
			c = known
		}
		found[c.String()] = c
		count[c]++
		return nil
	})
	var classes []*machineClass
	for _, c := range slices.SortedFunc(maps.Values(found), func(a, b *machineClass) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a.String(), b.String()))
	}) {
		if !slices.ContainsFunc(classes, func(larger *machineClass) bool { return larger.join(c) }) {
			classes = append(classes, c)
		}
	}
	return classes, err
}

// isOurs says whether what a trial's key says of its machine is true of this one.
func (p *facts) isOurs(trial hclspec.Address, c *machineClass) bool {
	if c.hardware != p.hardware {
		return false
	}
	for i := range p.Spec.Benchmarks {
		if g := p.Spec.Benchmarks[i].GPUs; g != nil {
			if kinds, asked := c.gpus[gpuRequest(trial, g)]; asked && !slices.Equal(kinds, p.gpuClasses(trial, g)) {
				return false
			}
		}
	}
	return true
}
