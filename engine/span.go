package engine

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"

	"github.com/benchgraph/benchgraph/device"
)

// Span stands for something large outside of the store that nodes share, such as the images in which the blocks of one
// commit run. A span is held from the start of its first node to the end of its last node, so that the images are made
// once, used by all nodes, and removed only then.
type Span struct {
	Name string // for messages
}

// Room is where spans are held.
//
// TryHold holds a span as a whole, or returns what the span waits for. If TryHold refuses while no span is held, the
// apply waits for other processes. Release ends a hold. Only the goroutine of the apply calls the methods.
type Room interface {
	TryHold(*Span) (waitsFor string)
	Release(*Span)
}

// spans is the gate to the spans of an apply. It keeps a step parked while none of the step's spans is held.
//
// The order of the spans is fixed, and only the first span with a parked step may be held next, so that a large span
// gets its turn. A held span waits for another one only if the graph demands it; then the last held one is given up.
type spans struct {
	room   Room
	of     map[*Span]*spanState
	closed spanHeap    // spans that are not held and have parked steps; stale ones remain until they are first
	queue  func(*Step) // puts a step into the ready queue when its span is held
}

type spanState struct {
	*Span
	rank   int
	left   int // nodes that have not ended
	held   bool
	queued bool    // in the heap closed
	parked []*Step // may contain steps that are no longer parked
}

type spanHeap []*spanState

func (h spanHeap) Len() int           { return len(h) }
func (h spanHeap) Less(i, j int) bool { return h[i].rank < h[j].rank }
func (h spanHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *spanHeap) Push(s any)        { *h = append(*h, s.(*spanState)) }
func (h *spanHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// spansOf returns the spans of a plan. Spans that were begun come first: the larger the share of nodes with a result,
// the earlier. Otherwise spans have the order of the graph.
func spansOf(p *Plan, room Room) *spans {
	q := &spans{room: room}
	if room == nil {
		return q
	}
	begun, last := map[*spanState]int{}, map[*spanState]int{}
	for i := range p.Steps {
		for _, span := range p.Steps[i].Node.Spans {
			s := q.of[span]
			if s == nil {
				if q.of == nil {
					q.of = map[*Span]*spanState{}
				}
				s = &spanState{Span: span}
				q.of[span] = s
			}
			s.left++
			last[s] = i
			if p.Steps[i].found.entry != nil {
				begun[s]++
			}
		}
	}
	order := slices.SortedFunc(maps.Values(q.of), func(a, b *spanState) int {
		return cmp.Or(
			cmp.Compare(begun[b]*a.left, begun[a]*b.left), cmp.Compare(last[a], last[b]), cmp.Compare(a.Name, b.Name),
		)
	})
	for rank, s := range order {
		s.rank = rank
	}
	return q
}

// admit keeps a step parked while none of its spans is held.
func (q *spans) admit(s *Step) (device.Request, state) {
	if q.of == nil || len(s.Node.Spans) == 0 {
		return device.Request{}, ready
	}
	for _, span := range s.Node.Spans {
		if q.of[span].held {
			return device.Request{}, ready
		}
	}
	for _, span := range s.Node.Spans {
		state := q.of[span]
		state.parked = append(state.parked, s)
		if !state.queued {
			state.queued = true
			heap.Push(&q.closed, state)
		}
	}
	return device.Request{}, parked
}

// pass lets every step pass: a span stays held until its last node has ended.
func (q *spans) pass(*Step, *device.Lease) (leave func(), ok bool) { return nil, true }

// first returns the next span to hold; nil if no step is parked.
func (q *spans) first() *spanState {
	for len(q.closed) > 0 {
		s := q.closed[0]
		for len(s.parked) > 0 && s.parked[0].state != parked {
			s.parked = s.parked[1:]
		}
		if len(s.parked) > 0 {
			return s
		}
		s.queued = false
		heap.Pop(&q.closed)
	}
	return nil
}

// open holds the next span and queues its parked steps. It reports false if there is no such span or the room refuses
// it.
func (q *spans) open() (opened bool, waitsFor string) {
	s := q.first()
	if s == nil {
		return false, ""
	}
	if why := q.room.TryHold(s.Span); why != "" {
		return false, why
	}
	s.held, s.queued = true, false
	heap.Pop(&q.closed)
	steps := s.parked
	s.parked = nil
	for _, step := range steps {
		if step.state == parked {
			q.queue(step)
		}
	}
	return true, ""
}

// end notes that a node has ended, and releases its spans if it was their last node.
func (q *spans) end(n *Node) {
	if q.of == nil {
		return
	}
	for _, span := range n.Spans {
		s := q.of[span]
		if s.left--; s.left == 0 {
			q.release(s)
		}
	}
}

// giveUp releases the last of the held spans. It reports false if none is held.
func (q *spans) giveUp() bool {
	var last *spanState
	for _, s := range q.of {
		if s.held && (last == nil || s.rank > last.rank) {
			last = s
		}
	}
	if last != nil {
		q.release(last)
	}
	return last != nil
}

func (q *spans) release(s *spanState) {
	if s.held {
		s.held = false
		q.room.Release(s.Span)
	}
}

// releaseAll releases the spans that an interrupted apply still holds.
func (q *spans) releaseAll() {
	for _, s := range q.of {
		q.release(s)
	}
}
