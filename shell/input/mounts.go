package input

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// inside is the directory that commands in containers know. An input is below its number among the node's inputs.
const inside = "/benchgraph/in"

// Inputs are directories of the host by their paths in containers: what commands were told of, and see read-only.
type Inputs map[string]string

// Paths gives references the paths that containers know what they refer to by, and notes what was referred to.
func (i Inputs) Paths(r Refs, env *engine.Env) func(hclspec.Address) string {
	return func(a hclspec.Address) string {
		in, to := r.Input(env, a), r.Inside(a)
		i[to] = in.Dir
		if a.Kind == "fetch" {
			if rel, err := filepath.Rel(in.Dir, workdir.OnlyFile(in.Entry)); err == nil {
				return path.Join(to, filepath.ToSlash(rel))
			}
		}
		return to
	}
}

// Inside is where a container has the result behind a reference.
func (r Refs) Inside(a hclspec.Address) string {
	return path.Join(inside, strconv.Itoa(slices.Index(r, a)))
}

// Mounts are the inputs as containers get them.
func (i Inputs) Mounts() []executor.Mount {
	var mounts []executor.Mount
	for _, to := range slices.Sorted(maps.Keys(i)) {
		mounts = append(mounts, executor.Mount{Host: i[to], Inside: to})
	}
	return mounts
}
