// Package results reads the stored results of a plan: findings, samples, the noise of benchmarks, comparisons of two
// candidates or of two runs, and a record by which another machine judges the same. It runs nothing.
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

// Stored gives access to the stored results of a graph: the drawing of the graph, and a plan of it.
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

// Unread reports whether no number that all members of a group need can be read from the group's stored pilot.
func (s *Stored) Unread(ctx context.Context, g *tasks.Group) bool {
	return g.Unread(ctx, func(at hclspec.Address) (cache.Key, bool) {
		m, stored := s.result(at)
		return m.Key, stored
	})
}

// Measured reports whether some measurement of the plan is stored, and whether all are.
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

// Findings judges every compare of the file by stored results, which it parses anew.
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

// Samples returns all stored numbers of the plan's benchmarks, whether a compare judges them or not.
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

// Stand returns a group as a judge sees it, and how its members stand.
func (s *Stored) Stand(ctx context.Context, g *tasks.Group) (*group.Group, group.Standings, error) {
	ends, err := s.ends(ctx, g)
	if err != nil {
		return nil, nil, err
	}
	judged := s.ForJudge(g)
	all, err := judged.Stand(ends)
	return judged, all, err
}

// Records calls each with the record of every stored block, except blocks of a group from which everything was
// gathered.
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

// ends returns the ends of the benchmark nodes and blocks of groups, by address. Blocks of a group from which
// everything was gathered have no files.
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
			if whole { // the keys of the blocks are enough
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

// bringer is a store that brings many results of a shared store here at a time.
type bringer interface {
	Bring(ctx context.Context, keys []cache.Key) (lost bool)
	BringOf(ctx context.Context, wanted func(address string) bool)
}

// Bring brings results from the shared store into the store of this machine: those of benchmarks, of the blocks of a
// benchmark that must be gathered anew, and of reports. It returns true if the shared store lacked a result that its
// index lists; then the plan must be made again.
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
