package tasks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/image/left"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/remote/declared"
)

// Elsewhere is another machine for which nodes are planned. Keys of trials contain its class, keys of builds its
// architecture, and requests are compared with its pool.
type Elsewhere struct {
	Name string // for people
	*machine.Profile
	Pool   device.Pool      // of that machine; only tells whether requests fit
	Remote *remote.Executor // runs nodes as jobs of By; nil: the nodes wait
	Here   bool             // this process runs on that machine, as a worker, and makes everything
	// how the machine with the project confines builds; "": this machine is the one
	Builder executor.Confinement
	By      *declared.Executor // the executor of such machines; nil: none
}

// Others returns the other machines for which something is planned.
func (c *Config) Others() []*Elsewhere {
	if c.Elsewhere != nil {
		return []*Elsewhere{c.Elsewhere}
	}
	return c.Reached
}

// Executors returns the executors that a plan may use, in the order of the file.
func (c *Config) Executors() (all []*remote.Executor) {
	for _, e := range c.Others() {
		if e.Remote != nil {
			all = append(all, e.Remote)
		}
	}
	return all
}

// platform returns the platform of builds, as Go names it: one for all machines.
func (p *Services) platform() (system, arch string) {
	if all := p.Others(); len(all) > 0 {
		return all[0].Host.OS, all[0].Host.Arch
	}
	return runtime.GOOS, runtime.GOARCH
}

// settleElsewhere removes this machine's conditions from nodes that are planned for another one. They are asked again
// if such a node turns out to be made here. An executor takes the nodes that only the other machine can run.
func (b *builder) settleElsewhere(ctx context.Context) {
	b.Lacking = map[string]engine.Condition{}
	away := map[*engine.Node]bool{} // nodes of jobs, whether or not this process may submit them
	for _, n := range b.list {
		e := b.PlaceOfNode(n)
		if e == nil || e.Here {
			continue
		}
		apart := b.Apart(n) != ""
		away[n] = apart && e.By != nil
		if apart && e.sends(n) {
			e.Remote.Take(n, b.Spec, func(ctx context.Context) (remote.Drawn, error) { return b.Drawn(ctx, b.Drawing) })
			b.Jobs = append(b.Jobs, n)
			continue
		}
		if n.Lacks != nil {
			b.Lacking[n.Address] = n.Lacks
			n.Lacks = nil
		}
		if away[n] {
			n.Resources.Queue = e.By.Name // compares the node's request with that machine
		}
	}
	left.Leave(ctx, b.list, away, b.Lacking, b.Lacks[false])
}

// MachinesOfFile returns the described machines of the file, in its order.
func (p *Facts) MachinesOfFile() []Elsewhere {
	if p.machines != nil {
		return p.machines
	}
	p.machines = []Elsewhere{}
	for i := range p.Spec.Machines {
		profile, err := machine.ParseProfile(p.Spec.Machines[i].Document)
		if err != nil {
			continue // another place reports the mistake
		}
		name := p.Spec.Machines[i].Address.Name
		if pool, err := device.PoolOf(profile, "machine "+name); err == nil {
			p.machines = append(p.machines, Elsewhere{Name: name, Profile: profile, Pool: pool})
		}
	}
	return p.machines
}

// WaitsFor returns a machine of the file that is large enough for a node for which this one is too small; "" otherwise.
func (p *Facts) WaitsFor(plan *engine.Plan, s *engine.Step) string {
	if b := benchmarkOf(s.Node); s.Action != engine.Blocked || !s.Never || b != nil && b.Executor == hclspec.Local {
		return ""
	}
	for _, dep := range s.Node.Needs {
		if by, ok := plan.Step(dep.Address); ok && by.Never {
			return p.WaitsFor(plan, by)
		}
	}
	for _, m := range p.MachinesOfFile() {
		if s.Node.Exclude.Action == "" && m.Pool.Fits(s.Node.Resources) == nil {
			return m.Name
		}
	}
	return ""
}

// NoteWaits notes which nodes of a plan wait for which machine of the file.
func (p *Drawing) NoteWaits(plan *engine.Plan) {
	p.machineOf = map[string]string{}
	for i := range plan.Steps {
		if name := p.WaitsFor(plan, &plan.Steps[i]); name != "" {
			p.machineOf[plan.Steps[i].Node.Address] = name
		}
	}
}

// WaitingEnd changes the end of a node that waits for a machine: how the node ends is not known yet.
func WaitingEnd(end engine.End, machine string) engine.End {
	if machine != "" && end.Never {
		end.Never, end.Reason = false, fmt.Sprintf("waits for machine %s: %s", machine, end.Reason)
	}
	return end
}

// Apart returns why this machine can never run a node that is planned for another one; "" for all other nodes.
func (p *Drawing) Apart(n *engine.Node) string {
	if e := p.PlaceOfNode(n); e == nil || e.Here {
		return ""
	}
	if err := p.Pool.Fits(n.Resources); err != nil {
		return err.Error()
	}
	switch n.Kind {
	case "trial":
		return "it is measured on a machine of another class than this one"
	case "fill":
		return "it compiles for a machine of another class than this one"
	}
	return ""
}

// Class is the part of a machine that the keys of trials contain.
type Class struct {
	Hardware string
	GPUs     map[string][]string // by gpuRequest: the kind of device that serves a group
}

// String returns the class for people.
func (c *Class) String() string {
	kinds := map[string]bool{}
	for _, list := range c.GPUs {
		for _, kind := range list {
			kinds[kind] = true
		}
	}
	return strings.Join(append(sortedKeys(kinds), c.Hardware), "; ")
}

// classFor returns the class of the machine on which a benchmark is measured, or the class of As.
func (p *Facts) classFor(b *hclspec.Benchmark) string {
	if p.As != nil {
		return p.As.Hardware
	}
	return p.classAt(p.PlaceOf(b))
}

// classAt returns the class of a machine; nil: this one.
func (p *Facts) classAt(e *Elsewhere) string {
	if e != nil {
		return e.Host.Class().String()
	}
	return p.Hardware
}

// hardwareFor returns the hardware for which a trial is planned, as its sample will record it.
func (p *Facts) hardwareFor(trial hclspec.Address, m Member) string {
	class := p.classFor(m.Bench)
	if g := m.Bench.GPUs; g != nil {
		for _, kind := range p.gpuClasses(trial, g) {
			return machine.WithGPUs(class, g.Count, kind)
		}
	}
	return class
}

// MachineFor returns the class and the devices of the machine for which a node is planned. As replaces the class.
func (p *Drawing) MachineFor(n *engine.Node) (class string, devices []gpu.Device) {
	e := p.PlaceOfNode(n)
	if class = p.classAt(e); p.As != nil {
		class = p.As.Hardware
	}
	return class, p.devicesAt(e)
}

// gpuClasses returns the kind of device that serves the blocks of a commit, as a list for the key; empty if no kind
// can. Another kind gives another result.
func (p *Facts) gpuClasses(trial hclspec.Address, g *hclspec.GPUs) []string {
	if p.As != nil {
		return p.As.GPUs[gpuRequest(trial, g)]
	}
	group, _ := trial.Trial()
	kind, n := kindFor(p.devicesAt(p.placeOfTrial(trial)), CommitOf(group),
		device.GPUs{Count: g.Count, Memory: g.Memory, Model: p.Seen.model(g.Model)})
	if n == 0 {
		return nil
	}
	return []string{kind}
}

// kindFor chooses one of the kinds of devices that can serve a request, and returns the number of its devices. All
// blocks of a commit get the same kind, in each plan and process: each kind draws a number for the commit, and the
// highest number wins. So a new or missing kind moves no commit between the other kinds. A missing device moves no
// commit unless too few of its kind are left; if each kind has too few, those with the most devices draw, so that
// stored results are still found.
func kindFor(devices []gpu.Device, commit string, want device.GPUs) (chosen string, n int) {
	count, most := map[string]int{}, 0
	for _, d := range devices {
		if want.Suits(d) {
			kind := machine.KindOf(d)
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

// gpuValues returns a request as keys contain it.
func gpuValues(g *hclspec.GPUs) []string {
	return []string{strconv.Itoa(g.Count), strconv.FormatInt(g.Memory, 10), g.Model}
}

// gpuRequest is the key of Class.GPUs: a group of a benchmark, and the request of its blocks.
func gpuRequest(trial hclspec.Address, g *hclspec.GPUs) string {
	return groupRequest(trial, gpuValues(g))
}

func groupRequest(trial hclspec.Address, values []string) string {
	group, _ := trial.Trial()
	return strings.Join(append([]string{trial.Name, group}, values...), "\x00")
}

// ClassIn reads a machine's class from the key text of a trial; nil if the text has none.
func ClassIn(trial hclspec.Address, text string) *Class {
	lines, err := cache.ParseText(text)
	if err != nil {
		return nil
	}
	c, request := &Class{GPUs: map[string][]string{}}, ""
	for _, l := range lines {
		switch {
		case l.Label == "hardware" && len(l.Values) == 1:
			c.Hardware = l.Values[0]
		case l.Label == "gpus":
			request = groupRequest(trial, l.Values)
		case l.Label == "gpu classes":
			c.GPUs[request] = l.Values
		}
	}
	if c.Hardware == "" {
		return nil
	}
	return c
}

// IsOurs reports whether a class from a trial's key is that of the machine on which the trial would run.
func (p *Facts) IsOurs(trial hclspec.Address, c *Class) bool {
	if c.Hardware != p.classAt(p.placeOfTrial(trial)) {
		return false
	}
	for i := range p.Spec.Benchmarks {
		if g := p.Spec.Benchmarks[i].GPUs; g != nil {
			if kinds, asked := c.GPUs[gpuRequest(trial, g)]; asked && !slices.Equal(kinds, p.gpuClasses(trial, g)) {
				return false
			}
		}
	}
	return true
}
