package engine

import (
	"fmt"
	"slices"
	"strings"
)

// Graph is a set of nodes, ordered so that every node comes after its dependencies.
type Graph struct {
	nodes  []*Node
	byName map[string]*Node
	users  [][]int32 // by node: the nodes that depend on it
	wanted []bool    // by node: wanted for its own sake; by default the nodes without users
}

// DuplicateError reports two nodes with the same address.
type DuplicateError struct{ First, Second *Node }

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("%s is declared twice: %s and %s", e.First.Address, e.First.Place, e.Second.Place)
}

// CycleError reports nodes that depend on each other in a circle: the last one depends on the first.
type CycleError struct{ Nodes []*Node }

func (e *CycleError) Error() string {
	names := make([]string, 0, len(e.Nodes)+1)
	for _, n := range e.Nodes {
		names = append(names, n.Address)
	}
	names = append(names, e.Nodes[0].Address)
	return "cycle: " + strings.Join(names, " needs ")
}

// NewGraph orders the nodes. Nodes that do not depend on each other keep their order. NewGraph is the only place that
// reports duplicates and cycles (*DuplicateError, *CycleError).
func NewGraph(nodes []*Node) (*Graph, error) {
	g := &Graph{
		nodes:  make([]*Node, 0, len(nodes)),
		byName: make(map[string]*Node, len(nodes)),
		wanted: make([]bool, len(nodes)),
	}
	for i, n := range nodes {
		if first, dup := g.byName[n.Address]; dup {
			return nil, &DuplicateError{First: first, Second: n}
		}
		g.byName[n.Address] = n
		n.id = ^i
	}
	o := ordering{Graph: g, given: nodes, open: make([]bool, len(nodes))}
	for _, n := range nodes {
		if err := o.place(n); err != nil {
			return nil, err
		}
	}
	g.listUsers()
	for i := range g.nodes {
		g.wanted[i] = len(g.users[i]) == 0
	}
	return g, nil
}

// listUsers fills g.users. All lists share one array, since most are short.
func (g *Graph) listUsers() {
	counts := make([]int32, len(g.nodes))
	sum := 0
	for _, n := range g.nodes {
		for dep := range n.waits {
			counts[dep.id]++
			sum++
		}
	}
	all := make([]int32, 0, sum)
	g.users = make([][]int32, len(g.nodes))
	for i, count := range counts {
		end := len(all) + int(count)
		g.users[i] = all[len(all):len(all):end]
		all = all[:end]
	}
	for i, n := range g.nodes {
		for dep := range n.waits {
			g.users[dep.id] = append(g.users[dep.id], int32(i))
		}
	}
}

// ordering is a graph under construction. A node that is not placed yet has the complement of its index in given as
// its id.
type ordering struct {
	*Graph
	given []*Node
	open  []bool // by index in given: the node is on the current path
}

// frame is a node on the current path, and the number of its dependencies that have been placed.
type frame struct {
	node  *Node
	index int // in given
	next  int
}

// place appends n after its dependencies. It keeps its own stack, since a chain of 100,000 nodes is a legal graph.
func (o *ordering) place(n *Node) error {
	if n.id >= 0 {
		return nil
	}
	path := o.enter(nil, n)
	for len(path) > 0 {
		top := &path[len(path)-1]
		dep := top.node.wait(top.next)
		if dep == nil {
			top.node.id = len(o.nodes)
			o.nodes = append(o.nodes, top.node)
			o.open[top.index] = false
			path = path[:len(path)-1]
			continue
		}
		top.next++
		switch {
		case dep.id >= 0 && dep.id < len(o.nodes) && o.nodes[dep.id] == dep:
		case dep.id >= 0 || ^dep.id >= len(o.given) || o.given[^dep.id] != dep:
			return fmt.Errorf("%s needs %s, which is not in the graph", top.node.Address, dep.Address)
		case o.open[^dep.id]:
			return cycle(path, dep)
		default:
			path = o.enter(path, dep)
		}
	}
	return nil
}

func (o *ordering) enter(path []frame, n *Node) []frame {
	o.open[^n.id] = true
	return append(path, frame{node: n, index: ^n.id})
}

func cycle(path []frame, again *Node) error {
	begin := slices.IndexFunc(path, func(f frame) bool { return f.node == again })
	nodes := make([]*Node, 0, len(path)-begin)
	for _, f := range path[begin:] {
		nodes = append(nodes, f.node)
	}
	return &CycleError{Nodes: nodes}
}

// wait returns the i-th dependency of n, or nil after the last one.
func (n *Node) wait(i int) *Node {
	for _, list := range [...][]*Node{n.Needs, n.Order, n.After} {
		if i < len(list) {
			return list[i]
		}
		i -= len(list)
	}
	return nil
}

// waits iterates over all dependencies of a node.
func (n *Node) waits(yield func(*Node) bool) { each(yield, n.Needs, n.Order, n.After) }

// musts iterates over the dependencies that must succeed before the node can run.
func (n *Node) musts(yield func(*Node) bool) { each(yield, n.Needs, n.Order) }

func each(yield func(*Node) bool, lists ...[]*Node) {
	for _, list := range lists {
		for _, dep := range list {
			if !yield(dep) {
				return
			}
		}
	}
}

// Nodes returns the nodes, each after its dependencies. The caller must not change the slice.
func (g *Graph) Nodes() []*Node { return g.nodes }

// Node returns the node with an address.
func (g *Graph) Node(address string) (*Node, bool) {
	n, ok := g.byName[address]
	return n, ok
}

// Users returns the nodes that depend on n.
func (g *Graph) Users(n *Node) []*Node {
	users := make([]*Node, 0, len(g.users[n.id]))
	for _, id := range g.users[n.id] {
		users = append(users, g.nodes[id])
	}
	return users
}

// Subset returns the graph of the nodes that target selects and of their dependencies. It leaves out the nodes that
// exclude selects and all nodes that need them. A nil target selects all nodes. The selected nodes become the wanted
// ones.
func (g *Graph) Subset(target, exclude func(address string) bool) (*Graph, error) {
	out := make([]bool, len(g.nodes))
	for i, n := range g.nodes {
		out[i] = exclude != nil && exclude(n.Address)
		for dep := range n.musts {
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
			for dep := range n.waits {
				in[dep.id] = true
			}
		}
	}
	return g.restrict(in, out, picked)
}

// restrict copies the nodes that stay: a node must not change once its graph is built.
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

// among returns the copies of nodes, without nodes that have none.
func among(copies []*Node, nodes []*Node) []*Node {
	var kept []*Node
	for _, n := range nodes {
		if c := copies[n.id]; c != nil {
			kept = append(kept, c)
		}
	}
	return kept
}
