package tasks

import (
	"context"
	"errors"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// outTask stands for an instance that is not made, since its row is skipped or has a mistake. A plan shows it with the
// reason.
type outTask struct{}

func (outTask) Describe(*cache.Description) {}

func (outTask) Run(context.Context, *engine.Env) error {
	return errors.New("it is not to be made")
}

// addOut adds the node of an instance that is not made. It needs nothing.
func (b *builder) addOut(block hclspec.Block) { b.add(block, outTask{}, nil) }

// absenceOf is what it means for candidates that something is out.
func absenceOf(out *hclspec.Out) Absence {
	if out.Skipped {
		return Absence{stats.Skipped, out.Reason}
	}
	return Absence{stats.NotRun, out.Reason}
}

// withoutBaseline says why a group has no baseline although its commit has one that is out; "" where it is not so. The
// group's benchmark goes over candidates, and those with a mistake are not among them.
func (b *builder) withoutBaseline(g *Group) string {
	for i := range b.Spec.Candidates {
		if c := &b.Spec.Candidates[i]; c.Commit == g.Commit && c.Baseline && c.Out != nil && g.Commit != "" &&
			g.Member(c.Key) == nil {
			return "the baseline is missing: " + c.Out.Reason
		}
	}
	return ""
}
