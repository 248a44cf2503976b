package campaign

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
)

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

// LacksSandbox returns why this machine makes no sandbox, if any block asks for one by one of the words.
func (p *Project) LacksSandbox(words ...string) error {
	for own, image := range p.Spec.Sandboxed() {
		if image == (hclspec.Address{}) && slices.Contains(words, p.SandboxWord(own)) {
			return executor.CheckSandbox()
		}
	}
	return nil
}

// warnUnconfined says that what is to run in a sandbox where there can be one will run without.
func (p *Project) warnUnconfined() hcl.Diagnostics {
	err := p.LacksSandbox("default")
	if err == nil {
		return nil
	}
	d := &hcl.Diagnostic{Severity: hcl.DiagWarning, Detail: "They should run in " + err.Error()}
	if executor.SandboxOf() == executor.Landlock {
		d.Summary = "Commands run behind Landlock alone"
		d.Detail += ". Without namespaces, Landlock guards their files, TCP ports and processes, and nothing else."
	} else {
		d.Summary = "Commands run without a sandbox"
		d.Detail += ". Where they may do all that you may, say sandbox = \"none\"."
	}
	return hcl.Diagnostics{d}
}
