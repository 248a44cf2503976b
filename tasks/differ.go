package tasks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// ownArtefact says whether a reference leads to what is measured: the candidate's own source, wheel or image, or the
// result of a task that is declared to be an artefact. Only that may differ between variants.
func (p *Drawing) ownArtefact(a hclspec.Address) bool {
	if !a.Keyed || p.candidates[a.Key] == nil {
		return false
	}
	return a.Kind == "source" || a.Kind == "wheel" || a.Kind == "image" || a.Kind == "task" && p.artefacts[a]
}

// noteWork notes the keys of tasks and downloads that each variant has for itself, where variants of one commit do not
// share the same work.
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

// mostReasons bounds an error about a mistake that all rows of a table share.
const mostReasons = 20

// differ is the error for variants that the file measures in different ways: all that such blocks cost would be spent
// on numbers that may not be compared. It is a *stats.RefusedError, or nil. Groups are left out for which measured is
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
			own, theirs := stats.Methodology{Fields: p.declared(m)}, stats.Methodology{Fields: p.declared(base)}
			diff, _ := stats.Compatible(own, theirs, p.Allow)
			for _, d := range diff {
				refused.Reasons = append(refused.Reasons, fmt.Sprintf(
					"%s: %s is %s for %s and %s for %s (%s, %s)",
					m.Candidate, d.Name, quoted(d.A, d.InA), p.placeOf(m), quoted(d.B, d.InB), p.placeOf(base),
					m.Bench.Address, placeText(m.Bench.Range)))
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

// declared is all that the file says of how a member is measured. Fixes are left out: which ones apply may be learnt
// later.
func (p *Drawing) declared(m Member) []stats.Field {
	fields := slices.DeleteFunc(p.methodology(m).Fields, func(f stats.Field) bool {
		return strings.HasPrefix(f.Name, "fix ")
	})
	b := m.Bench
	add := func(name, value string) { fields = append(fields, stats.Field{Name: name, Value: value}) }
	add("timeout", b.Timeout.String())
	add("quiet", strconv.FormatBool(b.Quiet))
	add("samples", strconv.Itoa(b.Design.Samples))
	if b.Image == (hclspec.Address{}) {
		add("limits", fmt.Sprintf("%d cores, %d bytes", b.CPUs, b.Memory))
		if !p.sandboxed(b.Sandbox, b.Image, true) {
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
		add("check", fmt.Sprint(expandCommand(c.Command, name), " in ", c.Source, ": ", c.Same))
	}
	for _, r := range b.Metrics.Require {
		add("require "+r.Metric, strconv.FormatFloat(r.Value, 'g', -1, 64))
	}
	return fields
}

// isJudged says whether a compare judges a member.
func (p *Drawing) isJudged(m Member) bool {
	for i := range p.Spec.Compares {
		if p.Of[p.Spec.Compares[i].Address][m.Bench.Address] {
			return true
		}
	}
	return false
}

// placeOf names a member with the place of its variant.
func (p *Facts) placeOf(m Member) string {
	for i := range p.Spec.Variants {
		if v := &p.Spec.Variants[i]; v.Name == m.Name {
			return fmt.Sprintf("%s (%s, %s)", m.Candidate, v.Address, placeText(v.Range))
		}
	}
	return m.Candidate
}

func placeText(r hcl.Range) string { return fmt.Sprintf("%s:%d", r.Filename, r.Start.Line) }

func quoted(value string, present bool) string {
	if !present {
		return "nothing"
	}
	return strconv.Quote(value)
}
