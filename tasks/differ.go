package tasks

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/methodology"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// ownArtefact reports whether a reference leads to a measured artefact: the candidate's own source, wheel or image, or
// the result of an artefact task. Only these may differ between variants.
func (p *Drawing) ownArtefact(a hclspec.Address) bool {
	if !a.Keyed || p.candidates[a.Key] == nil {
		return false
	}
	return a.Kind == "source" || a.Kind == "wheel" || a.Kind == "image" || a.Kind == "task" && p.artefacts[a]
}

// NoteWork fills p.Work: the keys of tasks and downloads that each variant has for itself, where variants of one commit
// have different ones.
func (p *Drawing) NoteWork(plan *engine.Plan) {
	type data struct{ kind, name, commit string }
	keys, work := map[data]map[cache.Key]bool{}, map[string]string{}
	of := map[string]data{}
	for i := range plan.Steps {
		s := &plan.Steps[i]
		if s.Node.Kind != "task" && s.Node.Kind != "fetch" {
			continue
		}
		a, err := hclspec.ParseAddress(s.Node.Address)
		if err != nil || !a.Keyed || p.candidates[a.Key] == nil || p.ownArtefact(a) {
			continue
		}
		d := data{a.Kind, a.Name, p.candidates[a.Key].Commit}
		if keys[d] == nil {
			keys[d] = map[cache.Key]bool{}
		}
		keys[d][s.Key] = true
		of[s.Node.Address], work[s.Node.Address] = d, s.Key.Short()
	}
	for address, d := range of {
		if len(keys[d]) == 1 {
			delete(work, address)
		}
	}
	p.Work = work
}

// mostReasons limits the error for a mistake that all rows of a table share.
const mostReasons = 20

// Differ returns the error for variants that the file measures in different ways, a *stats.RefusedError, or nil: the
// cost of such blocks would be wasted, since their numbers must not be compared. It skips groups for which measured is
// false.
func (p *Drawing) Differ(measured func(*Group) bool) error {
	refused := &stats.RefusedError{What: "not comparable"}
	for _, g := range p.Groups {
		base := g.trusted()
		if !base.Baseline || !measured(g) {
			continue
		}
		for _, m := range g.Members {
			if _, out := g.Absent[m.Name]; out || m.Baseline || !p.isJudged(m) {
				continue
			}
			own := methodology.Description{Fields: p.declared(m)}
			diff, _ := methodology.Compatible(own, methodology.Description{Fields: p.declared(base)}, p.Allow)
			for _, d := range diff {
				a, b := d.Sides()
				refused.Reasons = append(refused.Reasons, fmt.Sprintf("%s: %s is %s for %s and %s for %s (%s, %s)",
					m.Candidate, d.Name, a, placedAt(p.Spec, m), b, placedAt(p.Spec, base), m.Bench.Address,
					place(m.Bench.Range)))
			}
		}
	}
	if len(refused.Reasons) == 0 {
		return nil
	}
	if n := len(refused.Reasons); n > mostReasons {
		refused.Reasons = append(refused.Reasons[:mostReasons], fmt.Sprintf("%d further differences", n-mostReasons))
	}
	refused.Reasons = append(refused.Reasons,
		"only a candidate's own source, wheel and image may differ between variants: give both the same, "+
			"or declare artefact = true in the task whose result is to be measured")
	return refused
}

// declared returns all that the file says about how a member is measured, without fixes: some are learnt later.
func (p *Drawing) declared(m Member) []methodology.Field {
	fields := slices.DeleteFunc(p.methodology(m).Fields, func(f methodology.Field) bool {
		return strings.HasPrefix(f.Name, "fix ")
	})
	b := m.Bench
	add := func(name, value string) { fields = append(fields, methodology.Field{Name: name, Value: value}) }
	add("timeout", b.Timeout.String())
	add("quiet", strconv.FormatBool(b.Quiet))
	add("samples", strconv.Itoa(b.Design.Samples))
	if b.Image == (hclspec.Address{}) {
		add("limits", fmt.Sprintf("%d cores, %d bytes", b.CPUs, b.Memory))
		if p.measuredIn(b) == executor.Unconfined {
			add("network", strconv.FormatBool(b.Network))
		}
	}
	if s := b.Server; s != nil {
		add("ready", fmt.Sprint(s.HTTP, s.Log, s.TCP, " within ", s.Timeout))
	}
	if c := b.Check; c != nil {
		name := func(a hclspec.Address) string {
			if p.ownArtefact(a) {
				return "${" + a.Kind + "." + a.Name + "}"
			}
			return a.String()
		}
		add("check", fmt.Sprint(sample.Expand(c.Command, name), " in ", c.Source, ": ", c.Same))
	}
	for _, r := range b.Metrics.Require {
		add("require "+r.Metric, float(r.Value))
	}
	return fields
}

func (p *Drawing) isJudged(m Member) bool {
	return slices.ContainsFunc(p.Spec.Compares, func(c hclspec.Compare) bool {
		return p.Of[c.Address][m.Bench.Address]
	})
}

// placedAt returns the name of a member with the position of its variant in the file.
func placedAt(s *hclspec.Spec, m Member) string {
	for i := range s.Variants {
		if v := &s.Variants[i]; v.Name == m.Name {
			return fmt.Sprintf("%s (%s, %s)", m.Candidate, v.Address, place(v.Range))
		}
	}
	return m.Candidate
}

// A candidate whose artefacts equal the baseline's byte by byte, measured in the same way, is a tie: a measurement
// would find only noise. A plan leaves out candidates whose artefacts are made from the same inputs; a block detects
// equal bytes from different inputs. `benchgraph noise` is exempt, since its second candidate has no artefact of its
// own.

// Identicals returns the members of a group that the plan knows to be identical to the baseline, by the address of
// their benchmark. Groups with stored blocks stay as they are.
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
			continue // probes of known issues and sources come first
		}
		if own := m.artefacts(base); sameInputs(plan, own, base.artefacts(m)) {
			found[m.Bench.Address.String()] = Absence{stats.Tie, findings.SameInputs(sortedKeys(own))}
		}
	}
	return found
}

// sameWay reports whether two members are measured in exactly the same way, allowed differences included.
func (p *Drawing) sameWay(m, base Member) bool {
	own, theirs := methodology.Description{Fields: p.declared(m)}, methodology.Description{Fields: p.declared(base)}
	diff, _ := methodology.Compatible(own, theirs, nil)
	return len(diff) == 0 && slices.Equal(p.fixesOf(m), p.fixesOf(base))
}

// sameInputs reports whether the artefacts of two members are made from the same inputs. It compares keys, not digests:
// digests become known later, and the members of a block are in its key.
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

// artefacts returns the addresses of a candidate's own artefacts that the other side does not use, by kind and name.
func (m Member) artefacts(other Member) map[string]hclspec.Address {
	all, both := map[string]hclspec.Address{}, needsOf(other)
	for _, a := range needsOf(m) {
		if a.Keyed && a.Key == m.Candidate && m.Candidate != "" && !slices.Contains(both, a) {
			all[a.Kind+"."+a.Name] = a
		}
	}
	return all
}

// spareIdentical leaves out, before a block runs, the members with the same bytes as the baseline. If all members have
// them, the baseline is left out, too: nothing is left to compare it with. A pilot of an earlier version may have
// measured such a member: then all blocks do.
func (t *trialTask) spareIdentical(env *engine.Env, rec, pilot *sample.Record) {
	base := t.trusted()
	for _, m := range t.members {
		own, theirs := t.digests(env, m, base), t.digests(env, base, m)
		if !base.Baseline || m.Baseline || len(own) == 0 || !t.p.isJudged(m) || !maps.Equal(own, theirs) ||
			!t.p.sameWay(m, base) || pilot != nil && !pilot.Members[m.Name].Same {
			continue
		}
		t.spare(env, rec, m, own)
		if len(rec.Members) == len(t.members)-1 {
			t.spare(env, rec, base, theirs)
		}
	}
}

// spare leaves out a member because of artefacts with these digests.
func (t *trialTask) spare(env *engine.Env, rec *sample.Record, m Member, digests map[string]string) {
	own := sample.Member{Candidate: m.Candidate, Same: true, Skipped: "its artefacts are those of the baseline"}
	for _, name := range sortedKeys(digests) {
		node := fmt.Sprintf("%s[%q]", name, m.Candidate)
		own.Artefacts = append(own.Artefacts, sample.Artefact{Node: node, Digest: digests[name]})
	}
	rec.Members[m.Name] = own
	fmt.Fprintf(env.Log, "== block %d: %s is not run: %s ==\n", t.block, m.Name, own.Skipped)
}

// digests returns the digests of a candidate's own artefacts that the other side does not use, by kind and name.
func (t *trialTask) digests(env *engine.Env, m, other Member) map[string]string {
	all := map[string]string{}
	for name, a := range m.artefacts(other) {
		all[name] = t.refs.Input(env, a).Digest
	}
	return all
}

// nothingToMeasure returns why no block of the group is run; "" if a member is to be compared with the baseline.
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
