package tasks

import (
	"cmp"

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

// sandboxed says whether the commands of a block run in a sandbox on this machine, given what the block says and its image.
func (p *facts) sandboxed(own string, image hclspec.Address) bool {
	if image != (hclspec.Address{}) {
		return false
	}
	word := p.sandbox(own)
	return word == "required" || word == "default" && executor.CheckSandbox() == nil
}

// hides are the directories that commands in a sandbox must not see; nil: there is no sandbox.
func (p *facts) hides(own string, image hclspec.Address) []string {
	if !p.sandboxed(own, image) {
		return nil
	}
	return []string{p.Spec.Dir, p.StateDir, p.StoreDir}
}

// describeSandbox writes into a key that commands run in a sandbox. Those that do not have the key that they had before there
// were sandboxes.
func (p *facts) describeSandbox(d *cache.Description, own string, image hclspec.Address) {
	if p.sandboxed(own, image) {
		d.Add("sandbox", "namespaces")
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

// LacksSandbox reports whether any block asks for a sandbox that this machine does not make.
func (p *facts) LacksSandbox() bool {
	return (p.anySandbox("default") || p.anySandbox("required")) && executor.CheckSandbox() != nil
}

// anySandbox says whether the word is that of any block.
func (p *facts) anySandbox(word string) bool {
	for own, image := range p.Spec.Sandboxed() {
		if image == (hclspec.Address{}) && p.sandbox(own) == word {
			return true
		}
	}
	return false
}

// warnUnconfined says that what is to run in a sandbox where there can be one will run without.
func (p *facts) warnUnconfined() hcl.Diagnostics {
	if !p.anySandbox("default") {
		return nil
	}
	err := executor.CheckSandbox()
	if err == nil {
		return nil
	}
	return hcl.Diagnostics{{
		Severity: hcl.DiagWarning, Summary: "Commands run without a sandbox",
		Detail: "They should run in " + err.Error() + ". Where they may do all that you may, say sandbox = \"none\".",
	}}
}
