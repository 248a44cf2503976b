// Package left handles images that only jobs use, on a machine without a container engine: the jobs make them.
package left

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
)

// File is the name of the record in an image node's result.
const File = "image.json"

// Task replaces the task of an image that is left to jobs. Only the key of its result counts.
type Task struct{ Of engine.Task }

func (t Task) Describe(d *cache.Description) { t.Of.Describe(d) }

// Run writes a record without an image, so that a machine with an engine does not take the result for an image.
func (t Task) Run(_ context.Context, env *engine.Env) error {
	env.Emit(engine.Event{Type: engine.Note,
		Reason: "is left to the jobs that use it: this machine has no container engine"})
	return os.WriteFile(filepath.Join(env.Out, File), fmt.Appendf(nil, "{\"chain\": %q}\n", env.Key), 0o644)
}

// Leave leaves images to jobs if only jobs use them, and if this machine lacks only a container engine for them. away
// are the nodes of jobs, lacking are conditions of nodes that are asked later, and why returns why there is no engine.
func Leave(ctx context.Context, nodes []*engine.Node, away map[*engine.Node]bool,
	lacking map[string]engine.Condition, why engine.Condition) {
	if len(away) == 0 {
		return
	}
	users := usersOf(nodes)
	var here func(*engine.Node) bool
	here = func(n *engine.Node) bool {
		return !away[n] && (n.Kind != "image" || len(users[n]) == 0 || slices.ContainsFunc(users[n], here))
	}
	for _, n := range nodes {
		lacks := n.Lacks
		if lacking[n.Address] != nil {
			lacks = lacking[n.Address]
		}
		if n.Kind == "image" && n.Exclude.Action == "" && lacks != nil && !here(n) && why(ctx) != "" &&
			lacks(ctx) == why(ctx) {
			n.Task, n.Lacks = Task{n.Task}, nil
			delete(lacking, n.Address)
		}
	}
}

// usersOf returns the users of each image.
func usersOf(nodes []*engine.Node) map[*engine.Node][]*engine.Node {
	users := map[*engine.Node][]*engine.Node{}
	for _, n := range nodes {
		for _, dep := range n.Needs {
			if dep.Kind == "image" {
				users[dep] = append(users[dep], n)
			}
		}
	}
	return users
}
