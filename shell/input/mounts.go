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

// inside is the directory of inputs in containers. Each input is in a subdirectory with its number.
const inside = "/benchgraph/in"

// Inputs maps paths in containers to directories of the host: the inputs that commands refer to, mounted read-only.
type Inputs map[string]string

// Paths returns the path in containers for a reference, and notes the reference.
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

// Inside returns the directory of a referenced result in containers.
func (r Refs) Inside(a hclspec.Address) string {
	return path.Join(inside, strconv.Itoa(slices.Index(r, a)))
}

// Mounts returns the mounts of the inputs.
func (i Inputs) Mounts() []executor.Mount {
	var mounts []executor.Mount
	for _, to := range slices.Sorted(maps.Keys(i)) {
		mounts = append(mounts, executor.Mount{Host: i[to], Inside: to})
	}
	return mounts
}
