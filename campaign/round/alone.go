package round

import (
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/tasks"
)

// A target can be some of the variants that share blocks. A block of all variants would measure more than was asked
// for, and a block without its baseline, or without a variant that is to be judged, is no block of the comparison. So
// each of these variants gets blocks of its own, under addresses and keys of their own:
// trial.serving["COMMIT/VARIANT#1"]. They are shown, and never compared.

// Targeted are the groups of which the target selects some members, which are returned by name, and nothing else:
// neither a block, nor a compare or a report of the group. What is stored already of blocks of all members is enough.
func (r *Round) Targeted(target func(address string) bool) map[string]map[string]bool {
	alone := map[string]map[string]bool{}
	for _, g := range r.Groups {
		names, lacking := map[string]bool{}, false
		for _, m := range g.Members {
			if _, out := g.Absent[m.Name]; out || !target(m.Bench.Address.String()) {
				continue
			}
			names[m.Name] = true
			lacking = lacking || !r.Has(m.Bench.Address)
		}
		some := len(names) < len(g.Members)-len(g.Absent)
		if lacking && some && g.Design.Pairing != "independent" && !r.asksForAll(g, target) {
			alone[g.Name] = names
		}
	}
	return alone
}

// asksForAll reports whether the target selects something that is about all members of a group.
func (r *Round) asksForAll(g *tasks.Group, target func(address string) bool) bool {
	for _, t := range g.Trials {
		if target(t.At.String()) {
			return true
		}
	}
	about := map[hclspec.Address]bool{}
	for i := range r.Spec.Compares {
		c := &r.Spec.Compares[i]
		if about[c.Address] = r.IsAbout(c, g); about[c.Address] && target(c.Address.String()) {
			return true
		}
	}
	for i := range r.Spec.Reports {
		report := &r.Spec.Reports[i]
		for _, of := range report.Of {
			if about[of] && target(report.Address.String()) {
				return true
			}
		}
	}
	return false
}
