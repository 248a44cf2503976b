package hclspec

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec/internal/project"
)

// Label returns the name as keys and methodologies contain it. A source was a directory before names had slashes, so
// its label is the bare name.
func (d Data) Label() string {
	if d.Tree && d.Ref.Kind != "source" {
		return d.Name + "/"
	}
	return d.Name
}

// laid is an element of a data attribute for a single file, with its place. The node may have several outputs.
type laid struct {
	Data
	of Address // node with the attribute
	at hcl.Range
}

// checkData finds results that are laid out as one file although their outputs are several files.
func (l *loader) checkData() {
	if len(l.laid) == 0 {
		return
	}
	outputs := map[Address][]string{}
	for _, t := range l.spec.Tasks {
		outputs[t.Address] = t.Outputs
	}
	for _, w := range l.spec.Wheels {
		outputs[w.Address] = w.Outputs
	}
	for _, d := range l.laid {
		if files := project.FixedNames(outputs[d.Ref]); len(files) > 1 {
			l.scope.Diags.Error(d.of.Key, d.at, "Not one file",
				fmt.Sprintf("%s has several files, such as %s and %s. Write the name with a slash at its end to get "+
					"the directory: { %q = … }.", d.Ref, files[0], files[1], d.Name+"/"))
		}
	}
}
