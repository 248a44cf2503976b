package tasks

import (
	"context"
	"errors"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// outTask is the task of an instance that is never made, because its row is skipped or has a mistake. The plan shows
// the node with the reason.
type outTask struct{}

func (outTask) Describe(*cache.Description) {}

func (outTask) Run(context.Context, *engine.Env) error {
	return errors.New("this instance is never made")
}

// addOut adds the node of an instance that is never made. The node needs nothing.
func (b *builder) addOut(block hclspec.Block) { b.add(block, outTask{}, nil) }

// absenceOf returns the absence of the candidates of an instance that is never made.
func absenceOf(out *hclspec.Out) Absence {
	if out.Skipped {
		return Absence{stats.Skipped, out.Reason}
	}
	return Absence{stats.NotRun, out.Reason}
}

// withoutBaseline returns why a group has no baseline although its commit declares one; "" otherwise. A baseline with a
// mistake is not among the instances of the group's benchmark.
func (b *builder) withoutBaseline(g *Group) string {
	for i := range b.Spec.Candidates {
		if c := &b.Spec.Candidates[i]; c.Commit == g.Commit && c.Baseline && c.Out != nil && g.Commit != "" &&
			g.Member(c.Key) == nil {
			return "the baseline is missing: " + c.Out.Reason
		}
	}
	return ""
}
