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

// Paired is the result of a comparison of two sides.
type Paired struct {
	Rows  []stats.Comparison
	Notes []string // to be shown beside the rows, a sentence each
}

// Pair compares two candidates of one commit by stored results, whichever of them is the baseline. It returns the rows
// of every benchmark that measures both in the same blocks. The rules are those of the compare by; nil: of the first
// compare that judges one of the candidates.
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
		judged, all, err := s.Stand(ctx, g)
		if err != nil {
			return found, err
		}
		c := findings.Case{Compare: rules, Allow: s.Allow}
		found.Rows = append(found.Rows, c.Pair(judged, all, one.Name, other.Name)...)
	}
	switch {
	case !measured:
		return found, fmt.Errorf("no benchmark measures %s and %s in the same blocks", candidate, against)
	case len(found.Rows) == 0:
		return found, fmt.Errorf("%s judges neither %s nor %s", by.Address, candidate, against)
	}
	return found, nil
}

// rulesFor returns the compare whose rules apply to members of a benchmark: by, or, if by is nil, the first of those
// that judge the most of the members. It returns nil if by judges none of them. If no compare judges any, the rules are
// the defaults. If compares have different rules, it adds a note.
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

// ruleText returns the rules of a compare as text.
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

// Run is an apply that measured a candidate, according to the journal.
type Run struct {
	Name   string         `json:"name"`
	Number int            `json:"number"` // among the applies that measured the candidate, from 1
	Start  time.Time      `json:"start"`  // of the first block
	Blocks map[string]int `json:"blocks"` // by benchmark
}

// Runs returns the applies that measured a candidate, the first one first. A benchmark without candidates has no runs.
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

// PairRuns compares the blocks of a candidate that one run measured with those of another run. It returns the rows of
// every benchmark that both measured. The rules are those of the compare by; nil: of the first compare that judges the
// candidate.
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
		judged := d.ForJudge(s.group)
		i := slices.IndexFunc(judged.Members, func(t group.Member) bool { return t.Name == s.member.Name })
		c := findings.Case{Compare: rules, Allow: d.Allow}
		rows, err := c.Runs(judged, &judged.Members[i], one, other)
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

// attempts returns the successful attempts at blocks of the member: blocks of the group and of the member alone, also
// those that the file no longer asks for. Attempts that left the member out do not count.
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

// without reports whether the block of an attempt is still stored, and did not run the member.
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

// blocksOf returns the results of a run's blocks, also those that later results replaced. It adds a note about lost
// ones.
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
