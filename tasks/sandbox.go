package tasks

import (
	"cmp"
	"context"
	"errors"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
)

// SandboxWord returns the sandbox setting of a block: its own, the command line's, the project's, or the default.
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

// madeIn returns how the commands of a block that measures nothing are confined, from its setting and its image.
func (p *Facts) madeIn(own string, image hclspec.Address) executor.Confinement {
	makes := executor.SandboxOf
	if e := p.Elsewhere; e != nil && e.Builder != "" {
		makes = func() executor.Confinement { return e.Builder }
	}
	return p.confinement(own, image, makes)
}

// confinement returns how commands are confined under the setting of their block. makes returns the best confinement of
// the machine. The setting "required" always means namespaces.
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

// keepsCores reports whether the machine limits the measured commands to the declared cores, which only sandboxes do.
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

// hides returns the directories and files that confined commands must not see; nil for unconfined ones.
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

// describeSandbox adds the confinement to a key. Unconfined commands add nothing, so that their keys from before
// sandboxes stay valid.
func describeSandbox(d *cache.Description, in executor.Confinement) {
	if in != executor.Unconfined {
		d.Add("sandbox", string(in))
	}
}

// needSandbox makes a node with sandbox = "required" wait for a machine that has one.
func (b *builder) needSandbox(n *engine.Node, own string, image hclspec.Address) {
	if image != (hclspec.Address{}) || b.SandboxWord(own) != "required" {
		return
	}
	alsoLacks(n, func(context.Context) string {
		if none, ok := errors.AsType[*executor.Unsupported](executor.CheckSandbox()); ok {
			return "needs " + none.Error()
		}
		return "" // a passing shortage may be over when the node starts
	})
}
