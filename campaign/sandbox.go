package campaign

import (
	"errors"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
)

// LacksSandbox returns why this machine makes no sandbox, if any block asks for a sandbox by one of the words.
func (p *Project) LacksSandbox(words ...string) error {
	for word, image := range p.Spec.Sandboxed() {
		if image == (hclspec.Address{}) && slices.Contains(words, p.SandboxWord(word)) {
			return executor.CheckSandbox()
		}
	}
	return nil
}

// warnUnconfined warns of commands that run without the sandbox that they have by default, since this machine makes
// none. It returns an error if the machine may make one at another time.
func (p *Project) warnUnconfined() hcl.Diagnostics {
	err := p.LacksSandbox("default")
	if err == nil {
		return nil
	}
	none, ok := errors.AsType[*executor.Unsupported](err)
	if !ok { // it is unknown whether the machine makes sandboxes, and a wrong guess would let a command out
		return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "No sandbox can be made now",
			Detail: err.Error() + "."}}
	}
	d := &hcl.Diagnostic{Severity: hcl.DiagWarning, Detail: "They should run in " + none.Error()}
	if executor.SandboxOf() == executor.Landlock {
		d.Summary = "Commands run behind Landlock alone"
		d.Detail += ". Without namespaces, Landlock guards their files, TCP ports and processes, and nothing else."
	} else {
		d.Summary = "Commands run without a sandbox"
		d.Detail += ". Where they may do all that you may, say sandbox = \"none\"."
	}
	return hcl.Diagnostics{d}
}
