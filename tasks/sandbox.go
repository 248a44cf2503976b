package tasks

import (
	"cmp"
	"errors"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
)

// SandboxWord is the word for a block: its own, or that of the command line, the project or the system.
func (p *Facts) SandboxWord(own string) string {
	return cmp.Or(own, p.Sandbox, p.Spec.Sandbox, executor.StandardSandbox)
}

// measuredIn returns how the measured commands of a benchmark are confined, on the machine where they run.
func (p *Facts) measuredIn(b *hclspec.Benchmark) executor.Confinement {
	makes := executor.SandboxOf
	if e := p.PlaceOf(b); e != nil && e.Host.Sandbox != "" {
		makes = func() executor.Confinement { return executor.Confinement(e.Host.Sandbox) }
	}
	return p.confinement(b.Sandbox, b.Image, makes)
}

// madeIn returns how the commands of a block that is not measured are confined, given its word and its image.
func (p *Facts) madeIn(own string, image hclspec.Address) executor.Confinement {
	makes := executor.SandboxOf
	if e := p.Elsewhere; e != nil && e.Builder != "" {
		makes = func() executor.Confinement { return e.Builder }
	}
	return p.confinement(own, image, makes)
}

// confinement returns how commands are confined by the word of their block, on a machine that makes one sort of
// sandboxes. Only namespaces are what required asks for.
func (p *Facts) confinement(own string, image hclspec.Address,
	makes func() executor.Confinement) executor.Confinement {
	switch word := p.SandboxWord(own); {
	case image != (hclspec.Address{}) || word == "none":
		return executor.Unconfined
	case word == "required":
		return executor.Namespaces
	}
	return makes()
}

// keepsCores reports whether the measured commands of a benchmark get no more cores than it says: in a sandbox, where
// the machine enforces that.
func (p *Facts) keepsCores(b *hclspec.Benchmark) bool {
	if p.measuredIn(b) == executor.Unconfined {
		return false
	}
	if e := p.PlaceOf(b); e != nil && e.Host.Sandbox != "" {
		return e.Host.Enforces
	}
	e, err := executor.Enforced()
	return err == nil && e.CPUs
}

// hides are the directories that commands must not see; nil: they are not confined.
func (p *Facts) hides(in executor.Confinement) []string {
	if in == executor.Unconfined {
		return nil
	}
	dirs := append([]string{p.Spec.Dir, p.StateDir, p.StoreDir}, p.Hidden...)
	if s := p.Spec.Store; s != nil && s.Dir != "" {
		dirs = append(dirs, s.Dir)
	}
	return dirs
}

// describeSandbox writes into a key that commands run in a sandbox. Those that do not have the key that they had before
// there were sandboxes.
func describeSandbox(d *cache.Description, in executor.Confinement) {
	if in != executor.Unconfined {
		d.Add("sandbox", string(in))
	}
}

// needSandbox lets a node wait for a machine that makes the sandbox that is required.
func (b *builder) needSandbox(n *engine.Node, own string, image hclspec.Address) {
	if image != (hclspec.Address{}) || b.SandboxWord(own) != "required" {
		return
	}
	alsoLacks(n, func() string {
		if none, ok := errors.AsType[*executor.Unsupported](executor.CheckSandbox()); ok {
			return "needs " + none.Error()
		}
		return "" // there is one, or what is lacking may be there when the node starts
	})
}
