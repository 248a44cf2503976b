package tasks

import (
	"fmt"
	"runtime"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
)

// Elsewhere is another machine than this one, for which a project is planned. Keys of trials have its class and keys of
// builds its architecture; what a node needs is held against what that machine has.
type Elsewhere struct {
	Name string // for people
	*device.Profile
	Pool device.Pool // of that machine; it only says what fits
	Here bool        // this process runs on a machine like that one, and makes everything
	// how the machine with the project confines what it makes; "": that is this machine
	Builder executor.Confinement
}

// platform is the platform that builds are for, as Go names it.
func (p *Services) platform() (system, arch string) {
	if p.Elsewhere != nil {
		return p.Elsewhere.Host.OS, p.Elsewhere.Host.Arch
	}
	return runtime.GOOS, runtime.GOARCH
}

// settleElsewhere takes from the nodes what this machine lacks: the plan is for the other one. What this machine lacks
// is asked again when nodes are chosen that are made here. An executor takes the nodes that only the other one runs.
func (b *builder) settleElsewhere() {
	if b.Elsewhere == nil || b.Elsewhere.Here {
		return
	}
	b.Lacking = map[string]func() string{}
	for _, n := range b.list {
		if x := b.Config.Remote; x != nil && x.Wanted(n.Address) && b.Apart(n) != "" {
			x.Take(n, b.Choice.encode)
			continue
		}
		if n.Lacks != nil {
			b.Lacking[n.Address] = n.Lacks
			n.Lacks = nil
		}
	}
}

// machinesOfFile are the machines of the file that are described, in its order.
func (p *Facts) MachinesOfFile() []Elsewhere {
	if p.machines != nil {
		return p.machines
	}
	p.machines = []Elsewhere{}
	for i := range p.Spec.Machines {
		profile, err := device.ParseProfile(p.Spec.Machines[i].Document)
		if err != nil {
			continue // a mistake of the file, and told as such
		}
		name := p.Spec.Machines[i].Address.Name
		if pool, err := profile.Pool("machine " + name); err == nil {
			p.machines = append(p.machines, Elsewhere{Name: name, Profile: profile, Pool: pool})
		}
	}
	return p.machines
}

// WaitsFor is the machine of the file that can run a node for which this one is too small; empty: there is none, or
// this machine is not too small.
func (p *Facts) WaitsFor(plan *engine.Plan, s *engine.Step) string {
	if s.Action != engine.Blocked || !s.Never {
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

// noteWaits notes what of a plan waits for which machine of the file.
func (p *Drawing) NoteWaits(plan *engine.Plan) {
	p.machineOf = map[string]string{}
	if len(p.Spec.Machines) == 0 {
		return
	}
	for i := range plan.Steps {
		if name := p.WaitsFor(plan, &plan.Steps[i]); name != "" {
			p.machineOf[plan.Steps[i].Node.Address] = name
		}
	}
}

// waitingEnd is the end of a node that may wait for a machine: then it is not known yet how the node ends.
func WaitingEnd(end engine.End, machine string) engine.End {
	if machine != "" && end.Never {
		end.Never, end.Reason = false, fmt.Sprintf("waits for machine %s: %s", machine, end.Reason)
	}
	return end
}

// apart says why this machine can never run a node of a plan for another one; "" if it can.
func (p *Drawing) Apart(n *engine.Node) string {
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
