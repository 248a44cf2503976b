package cycle

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestFind compares Find with the search for a way from each node back to it, and follows the reported chains.
func TestFind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "nodes")
		graph := make([][]int, n)
		nodes := make([]int, n)
		for i := range graph {
			nodes[i] = i
			graph[i] = rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 3).Draw(t, "next")
		}
		found := false
		Find(nodes, func(i int) []int { return graph[i] }, func(chain []int) {
			found = true
			for i, from := range chain {
				if to := chain[(i+1)%len(chain)]; !slices.Contains(graph[from], to) {
					t.Fatalf("%v in %v: %d does not lead to %d", chain, graph, from, to)
				}
			}
		})
		if found != slices.ContainsFunc(nodes, func(i int) bool { return leads(graph, i, i) }) {
			t.Fatalf("%v: a cycle was found: %t", graph, found)
		}
	})
}

// leads reports whether there is a way from one node to another.
func leads(graph [][]int, from, to int) bool {
	seen := map[int]bool{}
	for next := slices.Clone(graph[from]); len(next) > 0; next = next[1:] {
		if !seen[next[0]] {
			seen[next[0]] = true
			next = append(next, graph[next[0]]...)
		}
	}
	return seen[to]
}
