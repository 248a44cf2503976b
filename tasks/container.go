package tasks

import (
	"context"
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/trial"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor/docker"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/fix"
)

// needEngine makes a node wait for a container engine, if the node runs in an image.
func (b *builder) needEngine(n *engine.Node, image hclspec.Address) {
	if image != (hclspec.Address{}) {
		n.Lacks = b.Lacks[n.Resources.GPUs.Count > 0]
		n.Resources.Cores = n.Resources.Cores || n.Resources.CPUs > 0
	}
}

// needGrants makes a block wait for an engine that grants the limits and devices of its servers. The engine is tried
// once for each set of grants.
func (b *builder) needGrants(n *engine.Node, members []Member) {
	for _, m := range members {
		s := m.Bench.Server
		if m.Bench.Image == (hclspec.Address{}) || s == nil || len(s.Ulimits)+len(s.Devices) == 0 {
			continue
		}
		grants := shell.GrantsOf(s)
		lacks, _ := b.grants.LoadOrStore(fmt.Sprint(grants), b.askEngine("what the server at "+place(m.Bench.Range)+
			" asks for", func(ctx context.Context, e *container.Engine) error {
			return docker.CheckGrants(ctx, e, grants)
		}))
		alsoLacks(n, lacks.(engine.Condition))
	}
}

// askEngine returns a function that reports why no container engine passes check; a nil check needs only an engine.
func (p *Services) askEngine(something string, check func(context.Context, *container.Engine) error) engine.Condition {
	return trial.Once(func(ctx context.Context) string {
		return trial.Lacks(ctx, p.Engine, p.StateDir, p.StoreDir, something, check)
	})
}

// withImage adds the fixes of an image to those that a node may learn. The image was made with the fixes built.
func (b *builder) withImage(cures []fix.Cure, image hclspec.Address, candidate string) (all []fix.Cure,
	built []fix.Due) {
	if image == (hclspec.Address{}) {
		return cures, nil
	}
	own, built := b.imageFixes(image, candidate)
	return slices.Concat(cures, own), built
}

// imageFixes returns the fixes that an image and its base images may learn from a failure of a candidate, and the fixes
// that these images are made with.
func (b *builder) imageFixes(image hclspec.Address, candidate string) (cures []fix.Cure, built []fix.Due) {
	for s := b.images[image]; s != nil; s = b.images[s.Base] {
		cures, built = slices.Concat(cures, b.cures(b.eligible(s.Fixes), s.Address, candidate)),
			fix.Merge(built, b.dueIn(s))
	}
	return cures, built
}
