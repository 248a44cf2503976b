package tasks

import (
	"cmp"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
)

// SandboxWord is the word for a block: its own, or that of the command line, the project or the system.
func (p *Facts) SandboxWord(own string) string {
	return cmp.Or(own, p.Sandbox, p.Spec.Sandbox, executor.StandardSandbox)
}

// confinement returns how the commands of a block are confined, given the word of the block and its image: of one that
// is measured, on the machine that is planned for. Only namespaces are what required asks for.
func (p *Facts) confinement(own string, image hclspec.Address, measured bool) executor.Confinement {
	switch word := p.SandboxWord(own); {
	case image != (hclspec.Address{}) || word == "none":
		return executor.Unconfined
	case word == "required":
		return executor.Namespaces
	}
	switch e := p.Elsewhere; {
	case e != nil && measured && e.Host.Sandbox != "":
		return executor.Confinement(e.Host.Sandbox)
	case e != nil && !measured && e.Builder != "":
		return e.Builder
	}
	return executor.SandboxOf()
}

// sandboxed says whether the commands of a block run in a sandbox.
func (p *Facts) sandboxed(own string, image hclspec.Address, measured bool) bool {
	return p.confinement(own, image, measured) != executor.Unconfined
}

// keepsCores reports whether the measured commands of a block get no more cores than it says: in a sandbox, where the
// machine enforces that.
func (p *Facts) keepsCores(own string, image hclspec.Address) bool {
	if !p.sandboxed(own, image, true) {
		return false
	}
	if e := p.Elsewhere; e != nil && e.Host.Sandbox != "" {
		return e.Host.Enforces
	}
	e, err := executor.Enforced()
	return err == nil && e.CPUs
}

// hides are the directories that commands in a sandbox must not see; nil: there is no sandbox.
func (p *Facts) hides(own string, image hclspec.Address, measured bool) []string {
	if !p.sandboxed(own, image, measured) {
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
func (p *Facts) describeSandbox(d *cache.Description, own string, image hclspec.Address, measured bool) {
	if c := p.confinement(own, image, measured); c != executor.Unconfined {
		d.Add("sandbox", string(c))
	}
}

// needSandbox lets a node wait for a machine that makes the sandbox that is required.
func (b *builder) needSandbox(n *engine.Node, own string, image hclspec.Address) {
	if image != (hclspec.Address{}) || b.SandboxWord(own) != "required" {
		return
	}
	alsoLacks(n, func() string {
		if err := executor.CheckSandbox(); err != nil {
			return "needs " + err.Error()
		}
		return ""
	})
}
