package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
)

// standing is how a member stands after its group's blocks.
type standing struct {
	member
	absence
	absent  bool
	failure *cache.Failure // its own, in a block
	infra   *cache.Failure // of a block as a whole
	never   string         // why no device can serve the blocks
	pending string         // why blocks are still missing
	whole   bool           // its numbers were gathered from all its blocks
	rows    []Measurement
	series  map[string]map[int]float64 // metric → block → value
	units   map[string]string
}

// measured says that the member has a valid sample of its primary metric.
func (s *standing) measured() bool { return len(s.series[s.bench.Metrics.Primary]) > 0 }

// stand finds out how the members of a group stand by what is stored.
func (p *Project) stand(ctx context.Context, g *group, plan *engine.Plan) (map[string]*standing, error) {
	ends, err := p.ends(ctx, plan, g)
	if err != nil {
		return nil, err
	}
	return p.standings(g, ends)
}

// standings finds out how the members of a group stand. ends tells how each of its blocks ended.
func (p *Project) standings(g *group, ends map[string]engine.End) (map[string]*standing, error) {
	all := map[string]*standing{}
	for _, m := range g.members {
		s := &standing{member: m, series: map[string]map[int]float64{}, units: map[string]string{}}
		s.absence, s.absent = g.absent[m.name]
		all[m.name] = s
	}
	for _, s := range all {
		end := ends[s.bench.Address.String()]
		if end.Entry.Dir == "" {
			continue
		}
		rows, err := gathered(end.Entry)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.bench.Address, err)
		}
		s.take(rows)
		s.whole = true
	}
	for _, t := range g.trials {
		open := slices.DeleteFunc(slices.Clone(t.members), func(name string) bool { return all[name].whole })
		end := ends[t.at.String()]
		switch {
		case len(open) == 0:
		case end.Entry.Dir == "":
			for _, name := range open {
				all[name].lacks(t.at, end)
			}
		default:
			if err := p.readBlock(end.Entry, open, all); err != nil {
				return nil, fmt.Errorf("%s: %w", t.at, err)
			}
		}
	}
	return all, nil
}

// take takes over numbers.
func (s *standing) take(rows []Measurement) {
	s.rows = append(s.rows, rows...)
	for _, r := range rows {
		if s.series[r.Metric] == nil {
			s.series[r.Metric] = map[int]float64{}
		}
		s.series[r.Metric][r.Block] = r.Value
		s.units[r.Metric] = r.Unit
	}
}

// lacks notes that a block has no result.
func (s *standing) lacks(at hclspec.Address, end engine.End) {
	switch {
	case s.absent:
	case end.Never:
		s.never = end.Reason
	case end.Failure != nil && end.Failure.Class.Retried():
		if f := end.Failure; f.Subject == "" || f.Subject == s.candidate {
			s.infra = f
		} else {
			s.pending = fmt.Sprintf("%s was voided by %s", at, f.Subject)
		}
	case end.Failure != nil && end.Failure.Subject == s.candidate:
		s.failure = end.Failure
	case s.pending == "":
		s.pending = cmp.Or(end.Reason, at.String()+" has not been run")
	}
}

// readBlock reads the samples and failures that the named members have in one block.
func (p *Project) readBlock(e cache.Entry, names []string, all map[string]*standing) error {
	rec, err := readTrial(e)
	if err != nil {
		return err
	}
	for _, name := range names {
		s := all[name]
		own, ok := rec.Members[name]
		switch {
		case !ok || own.Skipped != "":
			continue
		case own.Failure != nil:
			s.failure = own.Failure
			continue
		}
		rows, err := p.measurements(e, rec, s.member)
		var missing *engine.Failure
		switch {
		case errors.As(err, &missing):
			s.failure = &missing.Failure
		case err != nil:
			return err
		}
		s.take(rows)
	}
	return nil
}
