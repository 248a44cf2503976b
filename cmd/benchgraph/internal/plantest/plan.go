// Package plantest makes plans by hand, for tests of their output.
package plantest

import (
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/engine"
)

// Of makes a plan of steps. A node without a kind gets that of its address.
func Of(t testing.TB, list ...engine.Step) *engine.Plan {
	t.Helper()
	var nodes []*engine.Node
	for i := range list {
		if list[i].Node.Kind == "" {
			list[i].Node.Kind, _, _ = strings.Cut(list[i].Node.Address, ".")
		}
		nodes = append(nodes, list[i].Node)
	}
	g, err := engine.NewGraph(nodes)
	if err != nil {
		t.Fatal(err)
	}
	return &engine.Plan{Graph: g, Steps: list}
}

// Step makes a step of a node that needs nothing.
func Step(address string, a engine.Action, reason string) engine.Step {
	return engine.Step{Node: &engine.Node{Address: address}, Action: a, Reason: reason}
}
