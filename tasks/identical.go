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
func (p *Drawing) Identicals(plan *engine.Plan, g *Group) map[string]Absence {
	base := g.trusted()
	if _, out := g.Absent[base.Name]; out || !base.Baseline || g.Design.Pairing == "independent" {
		return nil
	}
	for _, t := range g.Trials {
		if step, ok := plan.Step(t.At.String()); ok {
			if _, stored := step.Stored(); stored {
				return nil
			}
		}
	}
	found := map[string]Absence{}
	for _, m := range g.Members {
		_, out := g.Absent[m.Name]
		if out || m.Baseline || !p.isJudged(m) || len(p.Probes[m.Candidate]) > 0 || !p.sameWay(m, base) {
			continue // a probe decides first
		}
		if own := m.artefacts(); sameInputs(plan, own, base.artefacts()) {
			found[m.Bench.Address.String()] = Absence{stats.Tie, findings.SameInputs(sortedKeys(own))}
		}
	}
	return found
}

// sameWay says whether two members are measured in exactly the same way, whatever may differ in the eyes of the user.
func (p *Drawing) sameWay(m, base Member) bool {
	own, theirs := stats.Methodology{Fields: p.declared(m)}, stats.Methodology{Fields: p.declared(base)}
	diff, _ := stats.Compatible(own, theirs, nil)
	return len(diff) == 0 && slices.Equal(fixNames(m), fixNames(base))
}

func fixNames(m Member) []string {
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
func (m Member) artefacts() map[string]hclspec.Address {
	all := map[string]hclspec.Address{}
	for _, a := range needsOf(m) {
		if a.Keyed && a.Key == m.Candidate && m.Candidate != "" {
			all[a.Kind+"."+a.Name] = a
		}
	}
	return all
}

// identical finds the members of a block that ran the bytes of the baseline before anything is run, by name with the
// artefacts that say so. Where all members are, the baseline is among them: there is nothing to hold against it.
func (t *trialTask) identical(env *engine.Env) map[string][]sample.Artefact {
	base := t.trusted()
	if !base.Baseline {
		return nil
	}
	same := map[string][]sample.Artefact{}
	theirs := t.digests(env, base)
	for _, m := range t.members {
		own := t.digests(env, m)
		if m.Baseline || len(own) == 0 || !t.p.isJudged(m) || !maps.Equal(own, theirs) || !t.p.sameWay(m, base) {
			continue
		}
		same[m.Name] = artefactList(m, own)
	}
	if len(same) > 0 && len(same) == len(t.members)-1 {
		same[base.Name] = artefactList(base, theirs)
	}
	return same
}

// digests are those of what a candidate brought with it, by kind and name.
func (t *trialTask) digests(env *engine.Env, m Member) map[string]string {
	all := map[string]string{}
	for name, a := range m.artefacts() {
		all[name] = t.refs.Input(env, a).Digest
	}
	return all
}

func artefactList(m Member, digests map[string]string) []sample.Artefact {
	var list []sample.Artefact
	for _, name := range sortedKeys(digests) {
		list = append(list, sample.Artefact{Node: fmt.Sprintf("%s[%q]", name, m.Candidate), Digest: digests[name]})
	}
	return list
}

// nothingToMeasure says of the baseline of a group why no block is run; empty: some member is to be held against it.
func (g *Group) nothingToMeasure() string {
	var same []string
	for _, m := range g.Members {
		gap, out := g.Absent[m.Name]
		switch {
		case m.Baseline:
		case !out:
			return ""
		case gap.Outcome == stats.Tie:
			same = append(same, m.Candidate)
		}
	}
	if len(same) == 0 {
		return ""
	}
	return "no block is needed: " + strings.Join(same, ", ") +
		" is the identical artefact, and nothing else is measured"
}
