package engine

import (
	"fmt"
	"slices"
	"strings"
)

// Graph is a set of nodes in an order in which every node comes after all that it waits for.
type Graph struct {
	nodes  []*Node
	byName map[string]*Node
	users  [][]int32 // for each node the nodes that need it or come after it
	wanted []bool    // for its own sake: by default the nodes that nothing else waits for
}

// DuplicateError says that two nodes have one address.
type DuplicateError struct{ First, Second *Node }

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("%s is declared twice: %s and %s", e.First.Address, e.First.Place, e.Second.Place)
}

// CycleError names the nodes that wait for each other; the last one waits for the first.
type CycleError struct{ Nodes []*Node }

func (e *CycleError) Error() string {
	names := make([]string, 0, len(e.Nodes)+1)
	for _, n := range e.Nodes {
		names = append(names, n.Address)
	}
	names = append(names, e.Nodes[0].Address)
	return "cycle: " + strings.Join(names, " needs ")
}

// NewGraph orders the nodes. Nodes that do not wait for each other keep the order in which they are given. It is the
// only place where duplicates and cycles are errors (*DuplicateError, *CycleError).
func NewGraph(nodes []*Node) (*Graph, error) {
	g := &Graph{byName: make(map[string]*Node, len(nodes))}
	for _, n := range nodes {
		if first, dup := g.byName[n.Address]; dup {
			return nil, &DuplicateError{First: first, Second: n}
		}
		g.byName[n.Address] = n
		n.id = unvisited
	}
	g.nodes = make([]*Node, 0, len(nodes))
	for _, n := range nodes {
		if err := g.place(n); err != nil {
			return nil, err
		}
	}
	g.users = make([][]int32, len(g.nodes))
	g.wanted = make([]bool, len(g.nodes))
	for _, n := range g.nodes {
		for _, dep := range n.waits() {
			g.users[dep.id] = append(g.users[dep.id], int32(n.id))
		}
	}
	for i := range g.nodes {
		g.wanted[i] = len(g.users[i]) == 0
	}
	return g, nil
}

const (
	unvisited = -1
	visiting  = -2
)

// frame is one node on the path from a root, and how many of its dependencies have been placed.
type frame struct {
	node *Node
	next int
}

// place appends n after all that it waits for. It keeps its own stack: a chain of 100,000 nodes is a legal graph.
func (g *Graph) place(n *Node) error {
	if n.id >= 0 {
		return nil
	}
	n.id = visiting
	path := []frame{{node: n}}
	for len(path) > 0 {
		top := &path[len(path)-1]
		deps := top.node.waits()
		if top.next == len(deps) {
			top.node.id = len(g.nodes)
			g.nodes = append(g.nodes, top.node)
			path = path[:len(path)-1]
			continue
		}
		dep := deps[top.next]
		top.next++
		switch {
		case dep.id == visiting:
			return cycle(path, dep)
		case dep.id >= 0 && dep.id < len(g.nodes) && g.nodes[dep.id] == dep:
			continue
		case g.byName[dep.Address] != dep:
			return fmt.Errorf("%s needs %s, which is not in the graph", top.node.Address, dep.Address)
		}
		dep.id = visiting
		path = append(path, frame{node: dep})
	}
	return nil
}

func cycle(path []frame, again *Node) error {
	begin := slices.IndexFunc(path, func(f frame) bool { return f.node == again })
	nodes := make([]*Node, 0, len(path)-begin)
	for _, f := range path[begin:] {
		nodes = append(nodes, f.node)
	}
	return &CycleError{Nodes: nodes}
}

// waits lists all that the node waits for.
func (n *Node) waits() []*Node {
	if len(n.After) == 0 && len(n.Order) == 0 {
		return n.Needs
	}
	return slices.Concat(n.Needs, n.Order, n.After)
}

// Nodes lists the nodes, each after all that it waits for. The caller does not change it.
func (g *Graph) Nodes() []*Node { return g.nodes }

// Node finds a node by its address.
func (g *Graph) Node(address string) (*Node, bool) {
	n, ok := g.byName[address]
	return n, ok
}

// Users lists the nodes that wait for n.
func (g *Graph) Users(n *Node) []*Node {
	users := make([]*Node, 0, len(g.users[n.id]))
	for _, id := range g.users[n.id] {
		users = append(users, g.nodes[id])
	}
	return users
}

// Subset is the graph of the nodes that target selects and all that they wait for, without the nodes that exclude
// selects and all that needs those. A nil target selects all nodes. The selected nodes become the wanted ones.
func (g *Graph) Subset(target, exclude func(address string) bool) (*Graph, error) {
	out := make([]bool, len(g.nodes))
	for i, n := range g.nodes {
		out[i] = exclude != nil && exclude(n.Address)
		for _, dep := range slices.Concat(n.Needs, n.Order) {
			out[i] = out[i] || out[dep.id]
		}
	}
	in := make([]bool, len(g.nodes))
	picked := make([]bool, len(g.nodes))
	for i := len(g.nodes) - 1; i >= 0; i-- {
		n := g.nodes[i]
		if out[i] {
			continue
		}
		picked[i] = target == nil && g.wanted[i] || target != nil && target(n.Address)
		in[i] = in[i] || picked[i] || target == nil
		if in[i] {
			for _, dep := range n.waits() {
				in[dep.id] = true
			}
		}
	}
	return g.restrict(in, out, picked)
}

// restrict copies the nodes that stay, since a node is not changed once its graph is built.
func (g *Graph) restrict(in, out, picked []bool) (*Graph, error) {
	copies := make([]*Node, len(g.nodes))
	var kept []*Node
	for i, n := range g.nodes {
		if !in[i] || out[i] {
			continue
		}
		c := *n
		c.Needs, c.Order, c.After = among(copies, n.Needs), among(copies, n.Order), among(copies, n.After)
		copies[i] = &c
		kept = append(kept, &c)
	}
	sub, err := NewGraph(kept)
	if err != nil {
		return nil, err
	}
	for i, c := range copies {
		if c != nil && picked[i] {
			sub.wanted[c.id] = true
		}
	}
	return sub, nil
}

// among maps nodes to their copies; those that stayed out are left out.
func among(copies []*Node, nodes []*Node) []*Node {
	var kept []*Node
	for _, n := range nodes {
		if c := copies[n.id]; c != nil {
			kept = append(kept, c)
		}
	}
	return kept
}
