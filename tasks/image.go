package tasks

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
)

// imageTask makes a container image. The image lies in the engine; the result says which one it is.
type imageTask struct {
	p     *Project
	refs  refs
	spec  *hclspec.Image
	fixes []appliedFix
}

func (t *imageTask) Describe(d *cache.Description) {
	switch b := t.spec.Build; {
	case b != nil:
		d.Add("build", b.Context, b.Dockerfile, b.Target)
		for _, name := range slices.Sorted(maps.Keys(b.Args)) {
			d.Add("arg", name, b.Args[name])
		}
	case t.spec.Base != (hclspec.Address{}):
		d.Add("base", t.refs.label(t.spec.Base))
	default:
		d.Add("from", t.spec.From)
	}
	for _, wheel := range t.spec.Install {
		d.Add("install", t.refs.label(wheel))
	}
	t.refs.describeFixes(d, t.fixes)
	t.refs.describeCommand(d, "verify", t.spec.Verify)
	d.Add("network", strconv.FormatBool(t.spec.Network))
	d.Add("push", t.spec.Push)
}

func (t *imageTask) Run(context.Context, *engine.Env) error { return errors.New(noEngine) }

const noEngine = "needs a container engine, which this version of benchgraph cannot drive; blocks without image run on the host"

func (b *builder) addImage(s *hclspec.Image) {
	t := &imageTask{p: b.Project, spec: s, fixes: b.due(b.eligible(s.Fixes), s.Candidate)}
	t.refs.add(s.Base)
	t.refs.add(s.Install...)
	t.refs.addFixes(t.fixes)
	t.refs.addCommand(s.Verify)
	b.add(s.Block, t, t.refs).Exclude = engine.Exclude{Action: engine.Blocked, Reason: noEngine}
}
