package round

import (
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/tasks"
)

// A target can be some of the variants that share blocks. A block of all variants would measure more than was asked
// for, and a block without its baseline, or without a variant that is to be judged, is no block of the comparison. So
// each of these variants gets blocks of its own, under addresses and keys of their own:
// trial.serving["COMMIT/VARIANT#1"]. They are shown, and never compared.

// Targeted returns, by group, the names of the members that must be measured alone: the target selects these members,
// but no block, compare or report of the group. There are none if the store has the results of the selected members.
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

// asksForAll reports whether the target selects a block, a compare or a report of the group.
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
		for _, compare := range report.Of {
			if about[compare] && target(report.Address.String()) {
				return true
			}
		}
	}
	return false
}
