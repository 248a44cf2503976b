package campaign

import (
	"context"
	"encoding/json"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/tasks"
)

// Part plans one node and its dependencies, in the graph that another process drew from the given choice. With again,
// the node runs even if its result is stored.
func (p *Project) Part(ctx context.Context, chosen json.RawMessage, address string, again bool) (*engine.Plan, error) {
	var c tasks.Choice
	if err := json.Unmarshal(chosen, &c); err != nil {
		return nil, err
	}
	p.next = c
	graph, err := p.draw(ctx)
	only, o := func(a string) bool { return a == address }, PlanOptions{}
	if err == nil {
		graph, err = graph.Subset(only, nil)
	}
	if again {
		o.Replace = only
	}
	if err != nil {
		return nil, err
	}
	return engine.NewPlan(ctx, graph, p.planOptions(o))
}

// ApplyPart runs a plan that Part made.
func (p *Project) ApplyPart(ctx context.Context, plan *engine.Plan, o ApplyOptions) (*engine.Result, error) {
	return p.run(ctx, plan, o, newTeller(o.Emit))
}
