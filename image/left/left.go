// Package left has images that only jobs use, on a machine without a container engine: their nodes bring them.
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

// File is what the node of an image leaves.
const File = "image.json"

// Task stands for the task of an image that is left to jobs. Of its result, only the key counts.
type Task struct{ Of engine.Task }

func (t Task) Describe(d *cache.Description) { t.Of.Describe(d) }

// Run leaves a record that names no image, so that a machine with an engine does not take the result for one.
func (t Task) Run(_ context.Context, env *engine.Env) error {
	env.Emit(engine.Event{Type: engine.Note,
		Reason: "is left to the jobs that use it: this machine has no container engine"})
	return os.WriteFile(filepath.Join(env.Out, File), fmt.Appendf(nil, "{\"chain\": %q}\n", env.Key), 0o644)
}

// Leave leaves images to jobs where nothing else uses them, and where no container engine is all that this machine
// lacks for them. Away are the nodes that run as jobs, lacking says what is asked of other nodes later, and why says
// why there is no engine.
func Leave(nodes []*engine.Node, away map[*engine.Node]bool, lacking map[string]func() string, why func() string) {
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
		if n.Kind == "image" && n.Exclude.Action == "" && lacks != nil && !here(n) && why() != "" &&
			lacks() == why() {
			n.Task, n.Lacks = Task{n.Task}, nil
			delete(lacking, n.Address)
		}
	}
}

// usersOf are the nodes that use each image.
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
