package tasks

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/methodology"
	"github.com/benchgraph/benchgraph/findings/rule"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
)

// tries returns the earlier attempts at the block, from the journal. Attempts with another key were at other work.
func (t *trialTask) tries(ctx context.Context, env *engine.Env) []sample.Try {
	all := t.p.Journal.Attempts(t.at.String())
	replaced := map[string]bool{} // IDs
	for _, a := range all {
		replaced[a.Replaces] = replaced[a.Replaces] || a.Failure == nil // a failed attempt has replaced nothing
	}
	var list []sample.Try
	if old := env.Replaces; old != nil {
		replaced[old.Log] = true
		if !slices.ContainsFunc(all, func(a journal.Attempt) bool { return a.ID == old.Log }) {
			list = t.triesElsewhere(ctx, old)
		}
	}
	for _, a := range all {
		if a.Key != env.Key {
			continue
		}
		if a.Failure != nil {
			list = append(list, voidedTry(a))
		} else if try, there := t.try(ctx, a); there || replaced[a.ID] {
			list = append(list, try)
		}
	}
	return list
}

// triesElsewhere returns the attempts of another machine that led to its result, and that result.
func (t *trialTask) triesElsewhere(ctx context.Context, old *cache.Meta) []sample.Try {
	e, err := t.p.Store.Get(ctx, old.Key, false)
	if err != nil {
		return nil
	}
	rec, _ := sample.ReadRecord(e) // an unreadable record has no attempts
	last, _ := t.try(ctx, journal.Attempt{ID: old.Log, Run: rec.Run, Key: old.Key, Start: e.Created.Add(-e.Duration)})
	return append(rec.Tries, last)
}

// try returns an earlier attempt that had a result, with the members that failed in it, and whether the result is in
// the store or was kept when it was replaced. An evicted result was measured again for want of it, not on request.
func (t *trialTask) try(ctx context.Context, a journal.Attempt) (try sample.Try, there bool) {
	try = sample.Try{Run: a.Run, Start: a.Start}
	e, err := t.p.ResultOf(ctx, a)
	if err != nil {
		return try, false
	}
	rec, err := sample.ReadRecord(e)
	if err != nil {
		return try, true
	}
	for _, m := range t.members {
		if f := rec.Lost(e, m.Bench, m.Name); f != nil {
			try.Lost = append(try.Lost, sample.Loss{Candidate: m.Candidate, Class: f.Class, Rule: f.Rule})
		}
	}
	return try, true
}

func voidedTry(a journal.Attempt) sample.Try {
	return sample.Try{Run: a.Run, Start: a.Start, Voided: true,
		Lost: []sample.Loss{{Candidate: a.Failure.Subject, Class: a.Failure.Class, Rule: a.Failure.Rule}}}
}

// triesAt returns the attempts at blocks of a group that gave a member no result: for an absent member its own
// failures, for others all failures in blocks whose last attempt failed. Records of blocks tell of the remaining
// attempts.
func (p *Services) triesAt(g *Group, m Member) map[int][]sample.Try {
	tries := map[int][]sample.Try{}
	_, absent := g.Absent[m.Name]
	for i, t := range g.Trials {
		attempts := p.Journal.Attempts(t.At.String())
		if n := len(attempts); n == 0 || attempts[n-1].Failure == nil && !absent {
			continue
		}
		for _, a := range attempts {
			if a.Failure != nil && (!absent || a.Failure.IsAbout(m.Candidate)) {
				tries[i+1] = append(tries[i+1], voidedTry(a))
			}
		}
	}
	return tries
}

// places returns paths that differ between the members of a block, under names that all members share: a client may
// print such a path among its settings.
func (t *trialTask) places(env *engine.Env, m Member) []methodology.Field {
	list := []methodology.Field{{Name: "$SRC", Value: filepath.Join(env.Work, m.Name)},
		{Name: "$OUT", Value: filepath.Join(env.Out, m.Name, sample.OutDir)}}
	for _, a := range needsOf(m) {
		if a.Kind == "image" {
			continue
		}
		name := a.String()
		if a.Key == m.Candidate {
			name = a.Kind + "." + a.Name
		}
		list = append(list, methodology.Field{Name: name, Value: t.refs.Input(env, a).Dir},
			methodology.Field{Name: name, Value: t.refs.Inside(a)})
	}
	return list
}

// rule returns how the file judges a group now.
func (p *Drawing) rule(g *Group) []methodology.Field {
	var compares []*hclspec.Compare
	for i := range p.Spec.Compares {
		if c := &p.Spec.Compares[i]; p.IsAbout(c, g) {
			compares = append(compares, c)
		}
	}
	return rule.Of(findings.LooksOf(g.Design), g.Design, g.trusted().Bench.Metrics, compares)
}

// trusted returns the member whose definitions count for the group: the baseline, or the first member.
func (g *Group) trusted() Member { return trusted(g.Members) }

// ResultOf returns the result of an attempt, which may have been replaced since.
func (p *Services) ResultOf(ctx context.Context, a journal.Attempt) (cache.Entry, error) {
	e, err := p.Store.Get(ctx, a.Key, false)
	if err != nil || e.Log != a.ID {
		e, err = p.Store.Get(ctx, cache.Superseded(a.Key, a.ID), false)
	}
	return e, err
}
