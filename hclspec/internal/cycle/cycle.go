// Package cycle finds cycles in graphs.
package cycle

import "slices"

// Find calls report for chains of nodes of which each leads to the next one, and the last one to the first. There is a
// report if there is a cycle. Each node is visited once, without recursion, since chains may be long.
func Find[N comparable](nodes []N, next func(N) []N, report func(chain []N)) {
	const active, done = 1, 2
	state := make(map[N]int, len(nodes))
	type visit struct {
		node N
		next []N // not visited yet
	}
	for _, start := range nodes {
		if state[start] != 0 {
			continue
		}
		path := []visit{{start, next(start)}}
		state[start] = active
		for len(path) > 0 {
			top := &path[len(path)-1]
			if len(top.next) == 0 {
				state[top.node] = done
				path = path[:len(path)-1]
				continue
			}
			to := top.next[0]
			top.next = top.next[1:]
			switch state[to] {
			case 0:
				state[to] = active
				path = append(path, visit{to, next(to)})
			case active:
				var chain []N
				for _, v := range path[slices.IndexFunc(path, func(v visit) bool { return v.node == to }):] {
					chain = append(chain, v.node)
				}
				report(chain)
			}
		}
	}
}
