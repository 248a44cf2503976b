package tasks

import (
	"context"
	"encoding/json"

	"github.com/benchgraph/benchgraph/engine"
)

// encodedChoice is a choice as a worker on another machine gets it: all of it that keys depend on.
type encodedChoice struct {
	Blocks  map[string]int             `json:"blocks"`
	Alone   map[string]map[string]bool `json:"alone"`
	Dropped map[string]absence         `json:"dropped"`
	Issues  map[string]absence         `json:"issues"`
	Misfits map[string]string          `json:"misfits"`
}

func (c *choice) encode() (json.RawMessage, error) {
	return json.Marshal(encodedChoice{c.blocks, c.alone, c.dropped, c.issues, c.misfits})
}

// Part plans one node, and all that it needs, of the graph that another process drew from a choice.
func (p *Project) Part(ctx context.Context, chosen json.RawMessage, address string) (*engine.Plan, error) {
	var c encodedChoice
	if err := json.Unmarshal(chosen, &c); err != nil {
		return nil, err
	}
	p.next = choice{blocks: c.Blocks, alone: c.Alone, dropped: c.Dropped, issues: c.Issues, misfits: c.Misfits}
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
	p.room.Begin(ctx, plan)
	if err := p.recallCanaries(ctx, plan); err != nil {
		return nil, err
	}
	return engine.Apply(ctx, plan, p.engineOptions(o, map[string]bool{}))
}
