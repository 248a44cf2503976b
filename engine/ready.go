package engine

import (
	"container/heap"

	"github.com/benchgraph/benchgraph/device"
)

// readyQueue holds the nodes that could start, by what they ask for: when a request cannot be granted, no other node
// with the same request is worth a try, however many there are.
type readyQueue struct {
	buckets map[device.Request]*bucket
	length  int
}

// bucket is a heap of nodes that ask for the same, the longest remaining path first.
type bucket struct {
	request device.Request
	steps   []*Step
	remains []float64 // by node: seconds on the longest path from it to the end
}

func (b *bucket) Len() int { return len(b.steps) }
func (b *bucket) Less(i, j int) bool {
	x, y := b.steps[i].Node.id, b.steps[j].Node.id
	if b.remains[x] != b.remains[y] {
		return b.remains[x] > b.remains[y]
	}
	return x < y
}
func (b *bucket) Swap(i, j int) { b.steps[i], b.steps[j] = b.steps[j], b.steps[i] }
func (b *bucket) Push(s any)    { b.steps = append(b.steps, s.(*Step)) }
func (b *bucket) Pop() any {
	last := b.steps[len(b.steps)-1]
	b.steps = b.steps[:len(b.steps)-1]
	return last
}

func (q *readyQueue) push(s *Step, remains []float64) {
	if q.buckets == nil {
		q.buckets = map[device.Request]*bucket{}
	}
	b := q.buckets[s.Node.Resources]
	if b == nil {
		b = &bucket{request: s.Node.Resources, remains: remains}
		q.buckets[s.Node.Resources] = b
	}
	heap.Push(b, s)
	q.length++
}

// next takes the node with the longest remaining path whose request grant accepts; nil when there is none. Quiet nodes
// come after all others: the host gets quiet by itself once the rest is done, and no build waits for a measurement.
func (q *readyQueue) next(grant func(device.Request) *device.Lease) (*Step, *device.Lease) {
	refused := map[device.Request]bool{}
	for {
		var best *bucket
		for _, b := range q.buckets {
			if b.Len() > 0 && !refused[b.request] && (best == nil || before(b, best)) {
				best = b
			}
		}
		if best == nil {
			return nil, nil
		}
		if lease := grant(best.request); lease != nil {
			q.length--
			return heap.Pop(best).(*Step), lease
		}
		refused[best.request] = true
	}
}

func before(a, b *bucket) bool {
	if a.request.Quiet != b.request.Quiet {
		return b.request.Quiet
	}
	x, y := a.steps[0].Node.id, b.steps[0].Node.id
	if a.remains[x] != a.remains[y] {
		return a.remains[x] > a.remains[y]
	}
	return x < y
}
