package results

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/tasks"
)

// Paired is what was found when two sides were held against each other.
type Paired struct {
	Rows  []stats.Comparison
	Notes []string // what must be known beside them, a sentence each
}

// Pair holds one candidate against another of the same commit, whichever of them is the baseline, by what is stored:
// the rows of every benchmark that measures both in the same blocks. The rules are those of a compare that judges one
// of them; by says of which, nil: of the first.
func (s *Stored) Pair(ctx context.Context, candidate, against string, by *hclspec.Compare) (Paired, error) {
	var found Paired
	measured := false
	for _, g := range s.Groups {
		one, other := g.Member(candidate), g.Member(against)
		if one == nil || other == nil || one == other {
			continue
		}
		measured = true
		rules := found.rulesFor(s.Drawing, by, one, other)
		if rules == nil {
			continue
		}
		told, all, err := s.Stand(ctx, g)
		if err != nil {
			return found, err
		}
		c := findings.Case{Compare: rules, Allow: s.Allow}
		found.Rows = append(found.Rows, c.Pair(told, all, one.Name, other.Name)...)
	}
	switch {
	case !measured:
		return found, fmt.Errorf("no benchmark measures %s and %s in the same blocks", candidate, against)
	case len(found.Rows) == 0:
		return found, fmt.Errorf("%s judges neither %s nor %s", by.Address, candidate, against)
	}
	return found, nil
}

// rulesFor is the compare by whose rules members of a benchmark are held against each other: that which is asked for,
// or the first of those that judge most of them. nil: it judges none. Without any, the rules are the defaults.
func (p *Paired) rulesFor(d *tasks.Drawing, by *hclspec.Compare, sides ...*tasks.Member) *hclspec.Compare {
	judges := func(c *hclspec.Compare) (n int) {
		for _, m := range sides {
			if d.Of[c.Address][m.Bench.Address] && !(m.Baseline && len(sides) > 1) {
				n++
			}
		}
		return n
	}
	if by != nil {
		if judges(by) == 0 {
			return nil
		}
		return by
	}
	var all []*hclspec.Compare
	most := 1
	for i := range d.Spec.Compares {
		c := &d.Spec.Compares[i]
		if n := judges(c); n > most {
			all, most = []*hclspec.Compare{c}, n
		} else if n == most {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return &hclspec.Compare{}
	}
	if slices.ContainsFunc(all, func(c *hclspec.Compare) bool { return ruleText(c) != ruleText(all[0]) }) {
		var texts []string
		for _, c := range all {
			texts = append(texts, c.Address.String()+" ("+ruleText(c)+")")
		}
		p.Notes = append(p.Notes,
			fmt.Sprintf("benchmark.%s is judged by several rules: %s. These rows are by the first; -compare=ADDRESS "+
				"takes another.", sides[0].Bench.Address.Name, strings.Join(texts, ", ")))
	}
	return all[0]
}

// ruleText is what a compare says of its rules.
func ruleText(c *hclspec.Compare) string {
	var parts []string
	if c.Tie > 0 {
		parts = append(parts, fmt.Sprintf("tie %g %%", 100*c.Tie))
	}
	if c.Confidence > 0 {
		parts = append(parts, fmt.Sprintf("confidence %g %%", 100*c.Confidence))
	}
	if len(c.Metrics) > 0 {
		parts = append(parts, "metrics "+strings.Join(c.Metrics, " "))
	}
	return cmp.Or(strings.Join(parts, ", "), "tie 2 % or 5 %")
}

// Run is an apply that measured a candidate, as far as the journal remembers.
type Run struct {
	Name   string         `json:"name"`
	Number int            `json:"number"` // among those that measured the candidate, from 1
	Start  time.Time      `json:"start"`  // of the first block
	Blocks map[string]int `json:"blocks"` // by benchmark
}

// Runs are the applies that measured a candidate, the first one first. What is measured without a candidate has none.
func Runs(ctx context.Context, d *tasks.Drawing, candidate string) []Run {
	if candidate == "" {
		return nil
	}
	byName := map[string]*Run{}
	for _, s := range seriesOf(d, candidate) {
		for _, a := range s.attempts(ctx) {
			r := byName[a.Run]
			if r == nil {
				r = &Run{Name: a.Run, Start: a.Start, Blocks: map[string]int{}}
				byName[a.Run] = r
			}
			r.Blocks[s.member.Bench.Address.Name]++
			if a.Start.Before(r.Start) {
				r.Start = a.Start
			}
		}
	}
	runs := make([]Run, 0, len(byName))
	for i, name := range slices.Sorted(maps.Keys(byName)) {
		byName[name].Number = i + 1
		runs = append(runs, *byName[name])
	}
	return runs
}

// PairRuns holds what one run measured of a candidate against what another one did: the rows of every benchmark that
// both measured. The rules are those of a compare that judges the candidate; by says of which, nil: of the first.
func PairRuns(ctx context.Context, d *tasks.Drawing, candidate, run, against string, by *hclspec.Compare) (Paired,
	error) {
	var found Paired
	for _, s := range seriesOf(d, candidate) {
		rules := found.rulesFor(d, by, s.member)
		if rules == nil {
			continue
		}
		one, err := s.blocksOf(ctx, run, &found)
		if err != nil {
			return found, err
		}
		other, err := s.blocksOf(ctx, against, &found)
		if err != nil {
			return found, err
		}
		if len(one.Blocks) == 0 || len(other.Blocks) == 0 {
			continue
		}
		told := d.Told(s.group)
		i := slices.IndexFunc(told.Members, func(t group.Member) bool { return t.Name == s.member.Name })
		c := findings.Case{Compare: rules, Allow: d.Allow}
		rows, err := c.Runs(told, &told.Members[i], one, other)
		if err != nil {
			return found, fmt.Errorf("%s: %w", s.member.Bench.Address, err)
		}
		found.Rows = append(found.Rows, rows...)
	}
	if len(found.Rows) == 0 {
		return found, fmt.Errorf("no benchmark has blocks of %s from both runs", candidate)
	}
	return found, nil
}

// series is all blocks in which a benchmark measured a candidate.
type series struct {
	*tasks.Drawing
	group  *tasks.Group
	member *tasks.Member
}

func seriesOf(d *tasks.Drawing, candidate string) (all []series) {
	for _, g := range d.Groups {
		if m := g.Member(candidate); m != nil {
			all = append(all, series{d, g, m})
		}
	}
	return all
}

// attempts returns the attempts at blocks of the member that succeeded: blocks of the group and of the member alone,
// also blocks for which the file does not ask any more. An attempt that left the member out does not count.
func (s *series) attempts(ctx context.Context) (all []journal.Attempt) {
	for _, key := range []string{s.group.Commit, s.member.Candidate} {
		for block := 1; ; block++ {
			attempts := s.Journal.Attempts(hclspec.TrialAddress(s.member.Bench.Address.Name, key, block).String())
			if len(attempts) == 0 && block > s.group.Count() {
				break
			}
			for _, a := range attempts {
				if a.Failure == nil && !s.without(ctx, a) {
					all = append(all, a)
				}
			}
		}
	}
	return all
}

// without says whether the block that an attempt measured is still stored, and did not run the member.
func (s *series) without(ctx context.Context, a journal.Attempt) bool {
	e, err := s.ResultOf(ctx, a)
	if err != nil {
		return false
	}
	rec, err := sample.ReadRecord(e)
	if err != nil {
		return false
	}
	m, in := rec.Members[s.member.Name]
	return !in || m.Skipped != ""
}

// blocksOf are the results of a run's blocks, wherever they are kept by now.
func (s *series) blocksOf(ctx context.Context, run string, found *Paired) (findings.Run, error) {
	r := findings.Run{Name: run}
	lost := 0
	for _, a := range s.attempts(ctx) {
		if a.Run != run {
			continue
		}
		e, err := s.ResultOf(ctx, a)
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
				lost+len(r.Blocks), run, s.member.Bench.Address))
	}
	return r, nil
}
