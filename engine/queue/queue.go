// Package queue holds steps that are ready to start, by their requests.
package queue

import (
	"container/heap"
	"slices"

	"github.com/benchgraph/benchgraph/device"
)

// Queue holds ready steps by their requests: after the pool refuses a request, no other step with the same request is
// tried, however many there are.
type Queue[T any] struct {
	Compare func(s, t T) int // negative: s comes before t

	buckets map[device.Request]*bucket[T]
	order   []*bucket[T] // the buckets with steps, by their first steps
	length  int
}

// bucket is a heap of steps with the same request.
type bucket[T any] struct {
	request device.Request
	steps   []T
	compare func(s, t T) int
}

func (b *bucket[T]) Len() int           { return len(b.steps) }
func (b *bucket[T]) Less(i, j int) bool { return b.compare(b.steps[i], b.steps[j]) < 0 }
func (b *bucket[T]) Swap(i, j int)      { b.steps[i], b.steps[j] = b.steps[j], b.steps[i] }
func (b *bucket[T]) Push(s any)         { b.steps = append(b.steps, s.(T)) }
func (b *bucket[T]) Pop() any {
	last := b.steps[len(b.steps)-1]
	b.steps = b.steps[:len(b.steps)-1]
	return last
}

// Len returns the number of steps.
func (q *Queue[T]) Len() int { return q.length }

// Push adds a step with its request.
func (q *Queue[T]) Push(s T, request device.Request) {
	if q.buckets == nil {
		q.buckets = map[device.Request]*bucket[T]{}
	}
	b := q.buckets[request]
	if b == nil {
		b = &bucket[T]{request: request, compare: q.Compare}
		q.buckets[request] = b
	}
	q.length++
	if len(b.steps) > 0 && b.compare(b.steps[0], s) < 0 {
		heap.Push(b, s)
		return
	}
	q.leave(b)
	heap.Push(b, s)
	q.enter(b)
}

// lookahead is the number of steps of a bucket that are searched for one that may start now.
const lookahead = 256

// Next removes and returns the first step that may start and whose request grant accepts; the zero value and nil if
// there is none. Quiet requests come after all others: the host becomes quiet once the rest is done, and no build waits
// for a measurement.
func (q *Queue[T]) Next(may func(T) bool, grant func(device.Request) *device.Lease) (s T, _ *device.Lease) {
	for _, b := range q.order {
		i := b.first(may)
		if i < 0 {
			continue
		}
		if lease := grant(b.request); lease != nil {
			q.leave(b)
			s = heap.Remove(b, i).(T)
			q.enter(b)
			q.length--
			return s, lease
		}
	}
	return s, nil
}

// Take removes and returns all steps with a request, in their order.
func (q *Queue[T]) Take(request device.Request) []T {
	b := q.buckets[request]
	q.leave(b)
	q.length -= len(b.steps)
	var steps []T
	for len(b.steps) > 0 {
		steps = append(steps, heap.Pop(b).(T))
	}
	return steps
}

// first returns the index of the first step that may start; -1 if there is none among those at the top.
func (b *bucket[T]) first(may func(T) bool) int {
	best := -1
	for i, s := range b.steps[:min(len(b.steps), lookahead)] {
		if may(s) && (best < 0 || b.compare(s, b.steps[best]) < 0) {
			best = i
		}
		if best == 0 {
			break
		}
	}
	return best
}

// leave removes a bucket from the order. Its first step must still be the one with which it was inserted.
func (q *Queue[T]) leave(b *bucket[T]) {
	if i, found := q.place(b); found {
		q.order = slices.Delete(q.order, i, i+1)
	}
}

func (q *Queue[T]) enter(b *bucket[T]) {
	if i, found := q.place(b); !found && len(b.steps) > 0 {
		q.order = slices.Insert(q.order, i, b)
	}
}

func (q *Queue[T]) place(b *bucket[T]) (int, bool) {
	if len(b.steps) == 0 {
		return 0, false
	}
	return slices.BinarySearchFunc(q.order, b, func(a, b *bucket[T]) int {
		if a.request.Quiet != b.request.Quiet {
			if b.request.Quiet {
				return -1
			}
			return 1
		}
		return a.compare(a.steps[0], b.steps[0])
	})
}
