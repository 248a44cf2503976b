package tasks

import (
	"context"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
)

// bringer is a store that brings results of a shared store here, many at a time.
type bringer interface {
	Bring(ctx context.Context, keys []cache.Key) (lost bool)
}

// bring brings here the results that a plan reads: of benchmarks, of the blocks of a benchmark that is to be gathered
// anew, and of reports. It reports whether the shared store did not have what it said, so that it must be planned
// again.
func (p *Project) bring(ctx context.Context, plan *engine.Plan) bool {
	store, ok := p.Store.(bringer)
	if !ok {
		return false
	}
	var keys []cache.Key
	add := func(address string) (stored bool) {
		step, ok := plan.Step(address)
		if !ok {
			return false
		}
		m, stored := step.Stored()
		if stored {
			keys = append(keys, m.Key)
		}
		return stored
	}
	for _, g := range p.groups {
		whole := true
		for _, m := range g.members {
			whole = add(m.bench.Address.String()) && whole
		}
		if !whole || g.members[0].bench.Canary != nil {
			for _, t := range g.trials {
				add(t.At.String())
			}
		}
	}
	for i := range p.Spec.Reports {
		add(p.Spec.Reports[i].Address.String())
	}
	return store.Bring(ctx, keys) && ctx.Err() == nil
}
