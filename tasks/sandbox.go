package tasks

import (
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
)

// sandbox is the word for a block: its own, that of the command line, that of the project, the standard of the system.
func (p *facts) sandbox(own string) string {
	return cmp.Or(own, p.Sandbox, p.Spec.Sandbox, executor.StandardSandbox)
}

// confinement returns how the commands of a block are confined, given the word of the block and its image: of one that
// is measured, on the machine that is planned for. Only namespaces are what required asks for.
func (p *facts) confinement(own string, image hclspec.Address, measured bool) executor.Confinement {
	switch word := p.sandbox(own); {
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
func (p *facts) sandboxed(own string, image hclspec.Address, measured bool) bool {
	return p.confinement(own, image, measured) != executor.Unconfined
}

// keepsCores reports whether the measured commands of a block get no more cores than it says: in a sandbox, where the
// machine enforces that.
func (p *facts) keepsCores(own string, image hclspec.Address) bool {
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
func (p *facts) hides(own string, image hclspec.Address, measured bool) []string {
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
func (p *facts) describeSandbox(d *cache.Description, own string, image hclspec.Address, measured bool) {
	if c := p.confinement(own, image, measured); c != executor.Unconfined {
		d.Add("sandbox", string(c))
	}
}

// needSandbox lets a node wait for a machine that makes the sandbox that is required.
func (b *builder) needSandbox(n *engine.Node, own string, image hclspec.Address) {
	if image != (hclspec.Address{}) || b.sandbox(own) != "required" {
		return
	}
	alsoLacks(n, func() string {
		if err := executor.CheckSandbox(); err != nil {
			return "needs " + err.Error()
		}
		return ""
	})
}

// LacksSandbox returns why this machine makes no sandbox, if any block asks for one by one of the words.
func (p *facts) LacksSandbox(words ...string) error {
	for own, image := range p.Spec.Sandboxed() {
		if image == (hclspec.Address{}) && slices.Contains(words, p.sandbox(own)) {
			return executor.CheckSandbox()
		}
	}
	return nil
}

// warnUnconfined says that what is to run in a sandbox where there can be one will run without.
func (p *facts) warnUnconfined() hcl.Diagnostics {
	err := p.LacksSandbox("default")
	if err == nil {
		return nil
	}
	d := &hcl.Diagnostic{Severity: hcl.DiagWarning, Detail: "They should run in " + err.Error()}
	if executor.SandboxOf() == executor.Landlock {
		d.Summary = "Commands run behind Landlock alone"
		d.Detail += ". Without namespaces, Landlock guards their files, TCP ports and processes, and nothing else."
	} else {
		d.Summary = "Commands run without a sandbox"
		d.Detail += ". Where they may do all that you may, say sandbox = \"none\"."
	}
	return hcl.Diagnostics{d}
}
