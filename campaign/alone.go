package campaign

import (
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/tasks"
)

// A target can be some of the variants that share blocks. A block of all variants would measure more than was asked
// for, and a block without its baseline, or without a variant that is to be judged, is no block of the comparison. So
// each of these variants gets blocks of its own, under addresses and keys of their own:
// trial.serving["COMMIT/VARIANT#1"]. They are shown, and never compared.

// targetedAlone are the groups of which the target selects some of the members and nothing else: neither a block, nor a
// compare or a report of the group. The members that are selected are returned by name; nil means that there is no such
// group. What is stored already of blocks of all members is enough.
func (p *Project) targetedAlone(plan *engine.Plan, target func(address string) bool) map[string]map[string]bool {
	var alone map[string]map[string]bool
	for _, g := range p.Groups {
		names, lacking := map[string]bool{}, false
		for _, m := range g.Members {
			address := m.Bench.Address.String()
			if _, out := g.Absent[m.Name]; out || !target(address) {
				continue
			}
			names[m.Name] = true
			step, ok := plan.Step(address)
			if ok {
				_, ok = step.Stored()
			}
			lacking = lacking || !ok
		}
		if lacking && len(names) < taking(g) && g.Design.Pairing != "independent" && !p.asksForAll(g, target) {
			if alone == nil {
				alone = map[string]map[string]bool{}
			}
			alone[g.Name] = names
		}
	}
	return alone
}

// taking is how many members take part in the group's blocks.
func taking(g *tasks.Group) int { return len(g.Members) - len(g.Absent) }

// asksForAll reports whether the target selects something that is about all members of a group.
func (p *Project) asksForAll(g *tasks.Group, target func(address string) bool) bool {
	for _, t := range g.Trials {
		if target(t.At.String()) {
			return true
		}
	}
	about := map[hclspec.Address]bool{}
	for i := range p.Spec.Compares {
		c := &p.Spec.Compares[i]
		if about[c.Address] = p.IsAbout(c, g); about[c.Address] && target(c.Address.String()) {
			return true
		}
	}
	for i := range p.Spec.Reports {
		r := &p.Spec.Reports[i]
		for _, of := range r.Of {
			if about[of] && target(r.Address.String()) {
				return true
			}
		}
	}
	return false
}

// MeasuredAlone reports whether a plan shows a benchmark from blocks of its own.
func (p *Project) MeasuredAlone(plan *engine.Plan, address string) bool {
	step, ok := plan.Step(address)
	if !ok || p.Alone == nil {
		return false
	}
	_, stored := step.Stored()
	return stored
}
