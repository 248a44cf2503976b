package remote

import (
	"fmt"
	"os"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// named returns the files and directories of this machine that commands of a node read by absolute paths, sorted: made
// are paths from abspath, literal those that stand in the file. Commands in an image see none of them.
func (x *Executor) named(spec *hclspec.Spec, n *engine.Node) (made, literal []string) {
	if slices.ContainsFunc(n.Needs, func(dep *engine.Node) bool { return dep.Kind == "image" }) {
		return nil, nil
	}
	d := cache.Describe(n.Kind)
	n.Task.Describe(d)
	lines, _ := cache.ParseText(d.Text()) // it is a description's text
	for _, l := range lines {
		if l.Label == "mount" { // the node checks its mounts itself
			continue
		}
		for _, text := range l.Values {
			some, others := spec.Absolute.Named(text)
			made, literal = append(made, some...), append(literal, others...)
		}
	}
	existing := func(all []string) []string {
		slices.Sort(all)
		return slices.DeleteFunc(slices.Compact(all), func(path string) bool {
			_, err := os.Stat(path)
			return err != nil || fs.Below(path, x.Project.State) || fs.Below(path, x.Project.Store)
		})
	}
	return existing(made), existing(literal)
}

// lacks returns why machines of the executor lack a file that commands of the node name; "" if none is known to be
// missing.
func (x *Executor) lacks(spec *hclspec.Spec, n *engine.Node) string {
	made, _ := x.named(spec, n)
	for _, path := range made {
		if fs.Below(path, x.Project.Dir) && !x.HasVolume(path) {
			return fmt.Sprintf("names %s by abspath, and machines of executor %s do not have it: %s", path, x.Name,
				namedRemedy)
		}
	}
	return ""
}

// namedRemedy is the remedy if a machine lacks a file that commands of a node name.
const namedRemedy = "hand the file over as data (the result of a task that has it as input), or declare a mount"

// CheckNamed returns the failure of a request whose node names files that this machine does not have; nil if it has
// all.
func (r *Request) CheckNamed() error {
	for _, path := range r.Named {
		if _, err := os.Stat(path); err != nil {
			return &engine.Failure{Failure: failure.Failure{Class: failure.Infra, Rule: "file_missing", Stage: "start",
				Message: fmt.Sprintf("worker: %s names %s by abspath, and it cannot be read here: %v", r.Address, path,
					fs.Cause(err)),
				Remedy: "bring it there under this path; or " + namedRemedy}}
		}
	}
	return nil
}
