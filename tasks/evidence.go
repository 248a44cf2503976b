package tasks

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// tries are the earlier attempts at the block that env measures, as the journal remembers them. Attempts at another key
// are attempts at other work.
func (t *trialTask) tries(ctx context.Context, env *engine.Env) []sample.Try {
	var list []sample.Try
	for _, a := range t.p.Journal.Attempts(t.at.String()) {
		if a.Key == env.Key {
			list = append(list, t.try(ctx, a))
		}
	}
	return list
}

// try is one earlier attempt. A result that a later attempt replaced is read for members that failed in it.
func (t *trialTask) try(ctx context.Context, a cache.Attempt) sample.Try {
	if a.Failure != nil {
		return voidedTry(a)
	}
	try := sample.Try{Run: a.Run, Start: a.Start}
	e, err := t.p.resultOf(ctx, a)
	if err != nil {
		return try // it is not in the store any more: that it was replaced is all that is known
	}
	rec, err := sample.ReadRecord(e)
	if err != nil {
		return try
	}
	for _, m := range t.members {
		own, in := rec.Members[m.name]
		f := own.Failure
		if in && f == nil && own.Skipped == "" {
			_, _, err := rec.Read(e, m.bench, m.name)
			if missing, ok := errors.AsType[*engine.Failure](err); ok {
				f = &missing.Failure
			}
		}
		if f != nil {
			try.Lost = append(try.Lost, sample.Loss{Candidate: m.candidate, Class: f.Class, Rule: f.Rule})
		}
	}
	return try
}

func voidedTry(a cache.Attempt) sample.Try {
	return sample.Try{Run: a.Run, Start: a.Start, Voided: true,
		Lost: []sample.Loss{{Candidate: a.Failure.Subject, Class: a.Failure.Class, Rule: a.Failure.Rule}}}
}

// triesAt are the attempts at blocks of a group that ended without a result for a member: those that it lost itself,
// and all attempts at a block of which the last one failed. They are counted where no block tells of them.
func (p *services) triesAt(g *group, m member) map[int][]sample.Try {
	tries := map[int][]sample.Try{}
	_, absent := g.absent[m.name]
	for i, t := range g.trials {
		attempts := p.Journal.Attempts(t.At.String())
		if n := len(attempts); n == 0 || attempts[n-1].Failure == nil && !absent {
			continue
		}
		for _, a := range attempts {
			if a.Failure != nil && (!absent || a.Failure.Subject == m.candidate) {
				tries[i+1] = append(tries[i+1], voidedTry(a))
			}
		}
	}
	return tries
}

// describeTries makes attempts that no block tells of part of a compare's key.
func describeTries(d *cache.Description, tries map[int][]sample.Try) {
	for _, block := range slices.Sorted(maps.Keys(tries)) {
		for _, t := range tries[block] {
			d.Add("try", strconv.Itoa(block), t.Run, t.Lost[0].Candidate, string(t.Lost[0].Class), t.Lost[0].Rule)
		}
	}
}

// places are the paths that only one lifecycle of a member has, by the names that all members have for them: what a
// client prints of its settings may hold such a path.
func (t *trialTask) places(env *engine.Env, m member) []stats.Field {
	list := []stats.Field{{Name: "$SRC", Value: filepath.Join(env.Work, m.name)},
		{Name: "$OUT", Value: filepath.Join(env.Out, m.name, sample.OutDir)}}
	for _, a := range needsOf(m) {
		if a.Kind == "image" {
			continue
		}
		name := a.String()
		if a.Key == m.candidate {
			name = a.Kind + "." + a.Name
		}
		list = append(list, stats.Field{Name: name, Value: t.refs.Input(env, a).Dir},
			stats.Field{Name: name, Value: t.refs.Inside(a)})
	}
	return list
}

// rule says how the file judges a group now: margins, metrics and numbers of blocks. It is in no key of a block, and
// each block records it, so that a change after the first block can be told.
func (p *drawing) rule(g *group) []stats.Field {
	float := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	fields := []stats.Field{
		{Name: "samples", Value: strconv.Itoa(g.design.Samples)}, {Name: "max", Value: strconv.Itoa(g.design.Max)},
		{Name: "looks", Value: strings.Join(numbers(findings.LooksOf(g.design)), " ")},
		{Name: "pairing", Value: g.design.Pairing},
	}
	if g.design.BurnIn > 0 { // blocks of earlier versions, which knew none, do not say so
		fields = append(fields, stats.Field{Name: "burn_in", Value: strconv.Itoa(g.design.BurnIn)})
	}
	m := g.trusted().bench.Metrics
	fields = append(fields, stats.Field{Name: "primary", Value: m.Primary},
		stats.Field{Name: "format", Value: m.Format},
		stats.Field{Name: "file", Value: m.File}, stats.Field{Name: "token_tolerance", Value: float(m.TokenTolerance)})
	for _, c := range m.Custom {
		fields = append(fields, stats.Field{Name: "metric " + c.Name,
			Value: strings.Join([]string{c.Match, c.JSON, c.File, c.Unit, c.Better, float(c.Tie)}, " ")})
	}
	for _, r := range m.Require {
		fields = append(fields, stats.Field{Name: "require " + r.Metric, Value: float(r.Value)})
	}
	for i := range p.Spec.Compares {
		if c := &p.Spec.Compares[i]; p.isAbout(c, g) {
			own := "compare." + c.Address.Instance() + " "
			fields = append(fields, stats.Field{Name: own + "tie", Value: float(c.Tie)},
				stats.Field{Name: own + "confidence", Value: float(c.Confidence)},
				stats.Field{Name: own + "metrics", Value: strings.Join(c.Metrics, " ")})
		}
	}
	return fields
}

// trusted is the member whose definitions stand for the group's: the baseline, or the first.
func (g *group) trusted() member {
	for _, m := range g.members {
		if m.baseline {
			return m
		}
	}
	return g.members[0]
}

func describeRequired(d *cache.Description, m hclspec.Metrics) {
	for _, r := range m.Require {
		d.Add("require", r.Metric, strconv.FormatFloat(r.Value, 'g', -1, 64))
	}
}
