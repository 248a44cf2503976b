package campaign

import (
	"context"
	"encoding/json"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/tasks"
)

// Part plans one node, and all that it needs, of the graph that another process drew from a choice.
func (p *Project) Part(ctx context.Context, chosen json.RawMessage, address string) (*engine.Plan, error) {
	var c tasks.Choice
	if err := json.Unmarshal(chosen, &c); err != nil {
		return nil, err
	}
	p.next = c
	graph, err := p.draw(ctx)
	if err == nil {
		graph, err = graph.Subset(func(a string) bool { return a == address }, nil)
	}
	if err != nil {
		return nil, err
	}
	return engine.NewPlan(ctx, graph, p.planOptions(PlanOptions{}))
}

// ApplyPart runs a plan of Part.
func (p *Project) ApplyPart(ctx context.Context, plan *engine.Plan, o ApplyOptions) (*engine.Result, error) {
	return p.run(ctx, plan, o, teller{o.Emit, map[string]bool{}})
}
