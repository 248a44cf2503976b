package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
)

// Run is an apply that measured a candidate, as far as the journal remembers.
type Run struct {
	Name   string         `json:"name"`
	Number int            `json:"number"` // among those that measured the candidate, from 1
	Start  time.Time      `json:"start"`  // of the first block
	Blocks map[string]int `json:"blocks"` // by benchmark
}

// Runs are the applies that measured a candidate, the first one first. What is measured without a candidate has none.
func (p *drawing) Runs(ctx context.Context, candidate string) []Run {
	if candidate == "" {
		return nil
	}
	byName := map[string]*Run{}
	for _, g := range p.groups {
		m := g.member(candidate)
		if m == nil {
			continue
		}
		for _, a := range p.attemptsOn(ctx, g, m) {
			r := byName[a.Run]
			if r == nil {
				r = &Run{Name: a.Run, Start: a.Start, Blocks: map[string]int{}}
				byName[a.Run] = r
			}
			r.Blocks[m.bench.Address.Name]++
			if a.Start.Before(r.Start) {
				r.Start = a.Start
			}
		}
	}
	runs := make([]Run, 0, len(byName))
	for i, name := range sortedKeys(byName) {
		byName[name].Number = i + 1
		runs = append(runs, *byName[name])
	}
	return runs
}

// attemptsOn are the attempts at blocks of a member that succeeded. There may have been more blocks than there are now,
// and they may have been its own. Those that are known to have been measured without it are none.
func (p *services) attemptsOn(ctx context.Context, g *group, m *member) []cache.Attempt {
	var all []cache.Attempt
	for _, key := range []string{g.commit, m.candidate} {
		for block := 1; ; block++ {
			attempts := p.Journal.Attempts(hclspec.TrialAddress(m.bench.Address.Name, key, block).String())
			if len(attempts) == 0 && block > g.count() {
				break
			}
			for _, a := range attempts {
				if a.Failure == nil && !p.leftOut(ctx, a, m) {
					all = append(all, a)
				}
			}
		}
	}
	return all
}

// leftOut says whether the block that an attempt measured is still stored, and has nothing of a member.
func (p *services) leftOut(ctx context.Context, a cache.Attempt, m *member) bool {
	e, err := p.resultOf(ctx, a)
	if err != nil {
		return false
	}
	rec, err := sample.ReadRecord(e)
	if err != nil {
		return false
	}
	_, in := rec.Members[m.name]
	return !in
}

// resultOf is what an attempt made, wherever it is kept by now.
func (p *services) resultOf(ctx context.Context, a cache.Attempt) (cache.Entry, error) {
	e, err := p.Store.Get(ctx, a.Key, false)
	if err != nil || e.Log != a.ID {
		e, err = p.Store.Get(ctx, cache.Superseded(a.Key, a.ID), false)
	}
	return e, err
}

// PairRuns holds what one run measured of a candidate against what another one did: the rows of every benchmark that
// both measured. The rules are those of a compare that judges the candidate; by says of which, nil: of the first.
func (p *drawing) PairRuns(ctx context.Context, candidate, run, against string, by *hclspec.Compare) (Paired, error) {
	var found Paired
	for _, g := range p.groups {
		m := g.member(candidate)
		if m == nil {
			continue
		}
		rules := p.rulesFor(by, &found, *m)
		if rules == nil {
			continue
		}
		one, err := p.blocksOf(ctx, g, m, run, &found)
		if err != nil {
			return found, err
		}
		other, err := p.blocksOf(ctx, g, m, against, &found)
		if err != nil {
			return found, err
		}
		if len(one.Blocks) == 0 || len(other.Blocks) == 0 {
			continue
		}
		told := p.told(g)
		i := slices.IndexFunc(told.Members, func(t findings.Member) bool { return t.Name == m.name })
		c := findings.Case{Compare: rules, Allow: p.Allow}
		rows, err := c.Runs(told, &told.Members[i], one, other)
		if err != nil {
			return found, fmt.Errorf("%s: %w", m.bench.Address, err)
		}
		found.Rows = append(found.Rows, rows...)
	}
	if len(found.Rows) == 0 {
		return found, fmt.Errorf("no benchmark has blocks of %s from both runs", candidate)
	}
	return found, nil
}

// blocksOf are the results of a run's blocks in which a member was measured, wherever they are kept by now.
func (p *services) blocksOf(ctx context.Context, g *group, m *member, run string, found *Paired) (findings.Run, error) {
	r := findings.Run{Name: run}
	lost := 0
	for _, a := range p.attemptsOn(ctx, g, m) {
		if a.Run != run {
			continue
		}
		e, err := p.resultOf(ctx, a)
		switch {
		case errors.Is(err, cache.ErrMiss):
			lost++
		case err != nil:
			return r, err
		default:
			r.Blocks = append(r.Blocks, e)
		}
	}
	if lost > 0 {
		found.Notes = append(found.Notes,
			fmt.Sprintf("%d of the %d blocks that run %s measured of %s are not in the store any more.", lost,
				lost+len(r.Blocks), run, m.bench.Address))
	}
	return r, nil
}
