package tasks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// A candidate whose artefacts are those of its baseline byte by byte, and that is measured in the same way, is a tie:
// what a measurement would find is noise. A plan leaves out a candidate whose artefacts are made from the same inputs;
// a block finds out that the same bytes were made from other ones. `benchgraph noise` is exempt, since its second
// candidate has no artefact of its own.

// identicals are the members of a group that a plan knows to be identical to the baseline, with why, by the address of
// their benchmark. Blocks that were measured with them stay as they are.
func (p *drawing) identicals(plan *engine.Plan, g *group) map[string]absence {
	base := g.trusted()
	if _, out := g.absent[base.name]; out || !base.baseline || g.design.Pairing == "independent" {
		return nil
	}
	for _, t := range g.trials {
		if step, ok := plan.Step(t.At.String()); ok {
			if _, stored := step.Stored(); stored {
				return nil
			}
		}
	}
	found := map[string]absence{}
	for _, m := range g.members {
		_, out := g.absent[m.name]
		if out || m.baseline || !p.isJudged(m) || len(p.probes[m.candidate]) > 0 || !p.sameWay(m, base) {
			continue // a probe decides first
		}
		if own := m.artefacts(); sameInputs(plan, own, base.artefacts()) {
			found[m.bench.Address.String()] = absence{stats.Tie, findings.SameInputs(sortedKeys(own))}
		}
	}
	return found
}

// sameWay says whether two members are measured in exactly the same way, whatever may differ in the eyes of the user.
func (p *drawing) sameWay(m, base member) bool {
	own, theirs := stats.Methodology{Fields: p.declared(m)}, stats.Methodology{Fields: p.declared(base)}
	diff, _ := stats.Compatible(own, theirs, nil)
	return len(diff) == 0 && slices.Equal(fixNames(m), fixNames(base))
}

func fixNames(m member) []string {
	var names []string
	for _, f := range m.allFixes() {
		names = append(names, f.Fix.Address.String())
	}
	slices.Sort(names)
	return names
}

// sameInputs says that the artefacts of two members are made from the same inputs. Digests of results are not asked,
// for they are known at one time and not at another, and who is in a block is in its key.
func sameInputs(plan *engine.Plan, own, theirs map[string]hclspec.Address) bool {
	if len(own) == 0 || len(own) != len(theirs) {
		return false
	}
	for name := range own {
		a, known := plan.Step(own[name].String())
		b, alsoKnown := plan.Step(theirs[name].String())
		if !known || !alsoKnown || a.Key != b.Key {
			return false
		}
	}
	return true
}

// artefacts are the addresses of what a candidate brings with it, by kind and name.
func (m member) artefacts() map[string]hclspec.Address {
	all := map[string]hclspec.Address{}
	for _, a := range needsOf(m) {
		if a.Keyed && a.Key == m.candidate && m.candidate != "" {
			all[a.Kind+"."+a.Name] = a
		}
	}
	return all
}

// identical finds the members of a block that ran the bytes of the baseline before anything is run, by name with the
// artefacts that say so. Where all members are, the baseline is among them: there is nothing to hold against it.
func (t *trialTask) identical(env *engine.Env) map[string][]sample.Artefact {
	base := t.trusted()
	if !base.baseline {
		return nil
	}
	same := map[string][]sample.Artefact{}
	theirs := t.digests(env, base)
	for _, m := range t.members {
		own := t.digests(env, m)
		if m.baseline || len(own) == 0 || !t.p.isJudged(m) || !maps.Equal(own, theirs) || !t.p.sameWay(m, base) {
			continue
		}
		same[m.name] = artefactList(m, own)
	}
	if len(same) > 0 && len(same) == len(t.members)-1 {
		same[base.name] = artefactList(base, theirs)
	}
	return same
}

// digests are those of what a candidate brought with it, by kind and name.
func (t *trialTask) digests(env *engine.Env, m member) map[string]string {
	all := map[string]string{}
	for name, a := range m.artefacts() {
		all[name] = t.refs.Input(env, a).Digest
	}
	return all
}

func artefactList(m member, digests map[string]string) []sample.Artefact {
	var list []sample.Artefact
	for _, name := range sortedKeys(digests) {
		list = append(list, sample.Artefact{Node: fmt.Sprintf("%s[%q]", name, m.candidate), Digest: digests[name]})
	}
	return list
}

// nothingToMeasure says of the baseline of a group why no block is run; empty: some member is to be held against it.
func (g *group) nothingToMeasure() string {
	var same []string
	for _, m := range g.members {
		gap, out := g.absent[m.name]
		switch {
		case m.baseline:
		case !out:
			return ""
		case gap.Outcome == stats.Tie:
			same = append(same, m.candidate)
		}
	}
	if len(same) == 0 {
		return ""
	}
	return "no block is needed: " + strings.Join(same, ", ") +
		" is the identical artefact, and nothing else is measured"
}
