package tasks

import (
	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
)

// findMisfits notes the tasks whose data asks for the one file of a result that is stored and has several, or none. The
// next round blocks them. It returns whether there is a new one.
func (p *Project) findMisfits(plan *engine.Plan) bool {
	found := false
	for i := range p.Spec.Tasks {
		address := p.Spec.Tasks[i].Address.String()
		if _, known := p.next.misfits[address]; known {
			continue
		}
		if why := misfit(plan, p.Spec.Tasks[i].Data); why != "" {
			p.next.misfits[address] = why
			found = true
		}
	}
	return found
}

// misfit says why a stored result cannot be laid out as the file asks for it; empty when all can, as far as is known.
func misfit(plan *engine.Plan, data []hclspec.Data) string {
	for _, item := range data {
		if item.Tree {
			continue
		}
		step, ok := plan.Step(item.Ref.String())
		if !ok {
			continue
		}
		// A remembered plan knows the digest of a result and not its files: then the node itself finds out.
		if m, stored := step.Stored(); stored && !m.Created.IsZero() {
			if message, remedy := shell.Unlaid(item, cache.Entry{Meta: m}); message != "" {
				return message + ": " + remedy
			}
		}
	}
	return ""
}
