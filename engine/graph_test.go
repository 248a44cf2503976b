package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
)

func TestGraphOrder(t *testing.T) {
	w := newWorld(t)
	g := w.graph(append(chain(), node{at: "a.alone"})...)
	var names []string
	for _, n := range g.Nodes() {
		names = append(names, n.Address)
	}
	if got := strings.Join(names, " "); got != "source.a source.b wheel.w bench.serve a.alone" {
		t.Error(got)
	}
	n, ok := g.Node("source.b")
	if users := g.Users(n); !ok || len(users) != 1 || users[0].Address != "wheel.w" {
		t.Errorf("%v %v", ok, users)
	}
}

func TestGraphMistakes(t *testing.T) {
	a, b, c := &engine.Node{Address: "a.a", Place: "f:1"}, &engine.Node{Address: "b.b"}, &engine.Node{Address: "c.c"}
	a.Needs, b.After, c.Order = []*engine.Node{b}, []*engine.Node{c}, []*engine.Node{a}
	root := &engine.Node{Address: "root", Needs: []*engine.Node{a}}
	_, err := engine.NewGraph([]*engine.Node{root, a, b, c})
	var cycle *engine.CycleError
	if !errors.As(err, &cycle) || err.Error() != "cycle: a.a needs b.b needs c.c needs a.a" {
		t.Errorf("%v", err)
	}
	self := &engine.Node{Address: "s.s"}
	self.Needs = []*engine.Node{self}
	if _, err := engine.NewGraph([]*engine.Node{self}); err == nil || err.Error() != "cycle: s.s needs s.s" {
		t.Errorf("%v", err)
	}
	other := &engine.Node{Address: "a.a", Place: "f:9"}
	_, err = engine.NewGraph([]*engine.Node{{Address: "x"}, a, other})
	var dup *engine.DuplicateError
	if !errors.As(err, &dup) || dup.Second != other || !strings.Contains(err.Error(), "f:1 and f:9") {
		t.Errorf("%v", err)
	}
	for _, id := range []string{"never in a graph", "in another graph"} {
		outside := &engine.Node{Address: "o.o"}
		if id == "in another graph" {
			if _, err := engine.NewGraph([]*engine.Node{{Address: "p.p"}, outside}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = engine.NewGraph([]*engine.Node{{Address: "z"}, {Address: "y"},
			{Address: "x", Needs: []*engine.Node{outside}}})
		if err == nil || err.Error() != "x needs o.o, which is not in the graph" {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestDeepChain has a graph that is one long chain: no code may recurse, or take quadratic time.
func TestDeepChain(t *testing.T) {
	const length = 100_000
	w := newWorld(t)
	w.store = everything{}
	nodes := make([]*engine.Node, length)
	for i := range nodes {
		nodes[i] = &engine.Node{Address: fmt.Sprint("n.", i), Kind: "n", Task: scripted{w, node{says: fmt.Sprint(i)}}}
		if i > 0 {
			nodes[i-1].Needs = []*engine.Node{nodes[i]}
		}
	}
	g, err := engine.NewGraph(nodes)
	if err != nil {
		t.Fatal(err)
	}
	p := w.planGraph(g)
	r, err := engine.Apply(context.Background(), p, engine.ApplyOptions{Store: w.store, Journal: w.journal,
		Pool: w.pool, Scratch: w.disk.Scratch, LogDir: w.dir})
	if err != nil || r.Cached != length {
		t.Errorf("%+v, %v", r, err)
	}
	g, err = g.Subset(func(string) bool { return true }, func(at string) bool { return at == nodes[length-1].Address })
	if err != nil || len(g.Nodes()) != 0 {
		t.Errorf("%d nodes are left, %v", len(g.Nodes()), err)
	}

	nodes[length-1].Needs = []*engine.Node{nodes[0]}
	if _, err := engine.NewGraph(nodes); err == nil || !strings.HasPrefix(err.Error(), "cycle: n.0 needs n.1 needs") {
		t.Error("a long cycle was not found")
	}
}

// everything is a store that has a result for every key.
type everything struct{ cache.Store }

func (everything) Get(_ context.Context, key cache.Key, _ bool) (cache.Entry, error) {
	return cache.Entry{Meta: cache.Meta{Key: key}, Dir: "/"}, nil
}
