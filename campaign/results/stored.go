// Package results tells what is stored of a plan: findings, samples, the noise of benchmarks, how two candidates or two
// runs of one compare, and a record by which another machine finds the same. It runs nothing.
package results

import (
	"context"
	"fmt"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/tasks"
)

// Stored is what is stored of a graph: the drawing of the graph, and a plan of it.
type Stored struct {
	*tasks.Drawing
	Plan *engine.Plan
}

// Has reports whether a result of a node is stored.
func (s *Stored) Has(at hclspec.Address) bool {
	_, stored := s.result(at)
	return stored
}

func (s *Stored) result(at hclspec.Address) (m cache.Meta, stored bool) {
	if step, ok := s.Plan.Step(at.String()); ok {
		return step.Stored()
	}
	return m, false
}

// Measured says whether something of what is measured is stored, and whether all of it is.
func (s *Stored) Measured() (some, all bool) {
	all = true
	for i := range s.Plan.Steps {
		step := &s.Plan.Steps[i]
		if step.Node.Kind == "trial" || step.Node.Kind == "benchmark" {
			_, stored := step.Stored()
			some, all = some || stored, all && (stored || step.Action == engine.Cached || step.Action == engine.Skip)
		}
	}
	return some, all
}

// Findings judges every compare of the file by what is stored, parsed anew.
func (s *Stored) Findings(ctx context.Context) ([]findings.Findings, error) {
	ends, err := s.ends(ctx, s.Groups...)
	if err != nil {
		return nil, err
	}
	all := make([]findings.Findings, 0, len(s.Spec.Compares))
	for i := range s.Spec.Compares {
		found, err := s.CaseOf(&s.Spec.Compares[i]).Judge(ends)
		if err != nil {
			return nil, err
		}
		if err := s.Account(&s.Spec.Compares[i], ends, &found); err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return all, nil
}

// Samples are all numbers that are stored of the plan's benchmarks, whether a compare judges them or not.
func (s *Stored) Samples(ctx context.Context) (rows []sample.Measurement, err error) {
	for _, g := range s.Groups {
		_, all, err := s.Stand(ctx, g)
		if err != nil {
			return nil, err
		}
		for _, m := range g.Members {
			for _, row := range all.Measurements(m.Name) {
				row.Of = m.Bench.Address
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// Stand finds out how the members of a group stand.
func (s *Stored) Stand(ctx context.Context, g *tasks.Group) (*group.Group, group.Standings, error) {
	ends, err := s.ends(ctx, g)
	if err != nil {
		return nil, nil, err
	}
	told := s.Told(g)
	all, err := told.Stand(ends)
	return told, all, err
}

// Records reads what blocks recorded, where not all was gathered from the blocks of a group.
func (s *Stored) Records(ctx context.Context, each func(*engine.Step, cache.Entry, *sample.Record)) error {
	ends, err := s.ends(ctx, s.Groups...)
	if err != nil {
		return err
	}
	for _, g := range s.Groups {
		for _, t := range g.Trials {
			end := ends[t.At.String()]
			if end.Entry.Dir == "" {
				continue
			}
			rec, err := sample.ReadRecord(end.Entry)
			if err != nil {
				return fmt.Errorf("%s: %w", t.At, err)
			}
			step, _ := s.Plan.Step(end.Address)
			each(step, end.Entry, rec)
		}
	}
	return nil
}

// ends tells how what gathers from the blocks of groups stands, and how the blocks themselves do. Of blocks from which
// all was gathered, ends has no files.
func (s *Stored) ends(ctx context.Context, groups ...*tasks.Group) (map[string]engine.End, error) {
	ends := map[string]engine.End{}
	find := func(at hclspec.Address) (stored bool, err error) {
		step, ok := s.Plan.Step(at.String())
		if !ok {
			return false, nil
		}
		end, err := s.end(ctx, step)
		if err == nil {
			ends[end.Address] = end
		}
		return end.Entry.Dir != "", err
	}
	for _, g := range groups {
		whole := true
		for _, m := range g.Members {
			stored, err := find(m.Bench.Address)
			if err != nil {
				return nil, err
			}
			whole = whole && stored
		}
		for _, t := range g.Trials {
			if whole { // their keys are enough
				if m, stored := s.result(t.At); stored {
					ends[t.At.String()] = engine.End{Address: t.At.String(), Entry: cache.Entry{Meta: m}}
				}
				continue
			}
			if _, err := find(t.At); err != nil {
				return nil, err
			}
		}
	}
	return ends, nil
}

func (s *Stored) end(ctx context.Context, step *engine.Step) (engine.End, error) {
	end, err := s.Plan.End(ctx, s.Store, step)
	return tasks.WaitingEnd(end, s.WaitsFor(s.Plan, step)), err
}

// bringer is a store that brings results of a shared store here, many at a time.
type bringer interface {
	Bring(ctx context.Context, keys []cache.Key) (lost bool)
	BringOf(ctx context.Context, wanted func(address string) bool)
}

// Bring brings results from the shared store into the store of this machine: those of benchmarks, of the blocks of a
// benchmark that is to be gathered anew, and of reports. The plan must be made again if it returns true: the shared
// store lacked a result that its index has.
func (s *Stored) Bring(ctx context.Context) bool {
	store, ok := s.Store.(bringer)
	if !ok {
		return false
	}
	var keys []cache.Key
	add := func(at hclspec.Address) bool {
		m, stored := s.result(at)
		if stored {
			keys = append(keys, m.Key)
		}
		return stored
	}
	for _, g := range s.Groups {
		whole := true
		for _, m := range g.Members {
			whole = add(m.Bench.Address) && whole
		}
		if !whole || g.Members[0].Bench.Canary != nil {
			for _, t := range g.Trials {
				add(t.At)
			}
		}
	}
	for i := range s.Spec.Reports {
		add(s.Spec.Reports[i].Address)
	}
	return store.Bring(ctx, keys) && ctx.Err() == nil
}
