package tasks

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell/fix"
)

// inImage lets a node run in an image, which is among what it needs: it also waits for an engine.
func (b *builder) inImage(n *engine.Node, image hclspec.Address) {
	if image != (hclspec.Address{}) {
		n.Lacks = b.Lacks[n.Resources.GPUs.Count > 0]
		n.Resources.Cores = n.Resources.Cores || n.Resources.CPUs > 0
	}
}

// askEngine finds out why there is no container engine, or none that gives containers devices.
func (p *Services) askEngine(devices bool) func() string {
	return sync.OnceValue(func() string {
		if p.Engine == nil {
			return "needs a container engine, and none was looked for"
		}
		ctx, cancel := context.WithTimeout(context.Background(), enginePatience)
		defer cancel()
		info, err := p.Engine.Info(ctx)
		switch {
		case err != nil:
			return "needs a container engine: " + err.Error()
		case !info.Seccomp:
			return "needs a container engine that filters system calls: start it with its own seccomp profile, on a " +
				"kernel with CONFIG_SECCOMP_FILTER"
		case devices:
			if err := executor.CheckGPUs(ctx, p.Engine); err != nil {
				return "needs devices in containers: " + err.Error()
			}
		}
		return ""
	})
}

// enginePatience bounds the wait for an engine that is there and does not answer.
const enginePatience = 10 * time.Second

// withImage adds to the fixes that a node may learn those of its image, and returns which of them that is made with.
func (b *builder) withImage(cures []Cure, image hclspec.Address, candidate string) (all []Cure, built []fix.Due) {
	if image == (hclspec.Address{}) {
		return cures, nil
	}
	own, built := b.imageFixes(image, candidate)
	return slices.Concat(cures, own), built
}

// imageFixes are the fixes that an image, or one that it begins with, may get for a failure of a candidate, and those
// that they are made with.
func (b *builder) imageFixes(image hclspec.Address, candidate string) (cures []Cure, built []fix.Due) {
	for s := b.images[image]; s != nil; s = b.images[s.Base] {
		cures, built = slices.Concat(cures, b.cures(b.eligible(s.Fixes), s.Address, candidate)),
			fix.Merge(built, b.dueIn(s))
	}
	return cures, built
}
