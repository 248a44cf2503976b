package engine

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
)

// Span stands for something large outside of the store that nodes share, such as the images that the blocks of one commit
// run in. It is held from the start of the first of its nodes until the last of them has ended, so that what it stands for
// is made once, used by all, and only then makes room.
type Span struct {
	Name string // for people
}

// Room is where spans are held.
//
// TryHold holds a span now, whole, or returns what it waits for. When it refuses while nothing is held, the apply waits
// for something outside of it. Release ends a hold. Only the goroutine that applies calls them.
type Room interface {
	TryHold(*Span) (waitsFor string)
	Release(*Span)
}

// spans are the spans of an apply: which are held, and what is ready and waits for the others.
//
// The order among them is fixed beforehand, and only the first that something is ready for may be next, so that a large
// one has its turn. Each is held whole, and a held one never waits for another to be able to go on, unless the graph says
// so: one that cannot go on is given up when nothing else can.
type spans struct {
	room   Room
	of     map[*Span]*spanState
	closed spanHeap       // not held, with something parked; also others, until they come to the top
	parked map[*Step]bool // ready, and none of their spans is held
}

type spanState struct {
	*Span
	rank   int
	left   int // nodes that have not ended
	held   bool
	queued bool    // in closed
	parked []*Step // also others, which are not parked any more
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

// spansOf gathers the spans of a plan. What is begun is ended first: the larger the part of its nodes that has a result,
// the earlier a span is held; else they keep the order of the graph.
func spansOf(p *Plan, room Room) spans {
	q := spans{room: room}
	if room == nil {
		return q
	}
	begun, last := map[*spanState]int{}, map[*spanState]int{}
	for i := range p.Steps {
		for _, span := range p.Steps[i].Node.Spans {
			s := q.of[span]
			if s == nil {
				if q.of == nil {
					q.of, q.parked = map[*Span]*spanState{}, map[*Step]bool{}
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
		return cmp.Or(cmp.Compare(begun[b]*a.left, begun[a]*b.left), cmp.Compare(last[a], last[b]), cmp.Compare(a.Name, b.Name))
	})
	for rank, s := range order {
		s.rank = rank
	}
	return q
}

// park keeps a step back while none of its spans is held. It returns false for one that need not wait.
func (q *spans) park(s *Step) bool {
	if q.of == nil || len(s.Node.Spans) == 0 {
		return false
	}
	for _, span := range s.Node.Spans {
		if q.of[span].held {
			return false
		}
	}
	q.parked[s] = true
	for _, span := range s.Node.Spans {
		state := q.of[span]
		state.parked = append(state.parked, s)
		q.queue(state)
	}
	return true
}

func (q *spans) queue(s *spanState) {
	if !s.queued {
		s.queued = true
		heap.Push(&q.closed, s)
	}
}

// first is the span that is to be held next; nil when nothing is parked.
func (q *spans) first() *spanState {
	for len(q.closed) > 0 {
		s := q.closed[0]
		for len(s.parked) > 0 && !q.parked[s.parked[0]] {
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

// open holds the next span and returns what was parked for it; nothing when there is none or it has to wait.
func (q *spans) open() (free []*Step, waitsFor string) {
	s := q.first()
	if s == nil {
		return nil, ""
	}
	if why := q.room.TryHold(s.Span); why != "" {
		return nil, why
	}
	s.held, s.queued = true, false
	heap.Pop(&q.closed)
	for _, step := range s.parked {
		if q.parked[step] {
			delete(q.parked, step)
			free = append(free, step)
		}
	}
	s.parked = nil
	return free, ""
}

// end notes that a node has ended, and with it perhaps its spans.
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

// giveUp releases the last of the held spans; false when none is held.
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

// releaseAll gives back what an apply that ends early still holds.
func (q *spans) releaseAll() {
	for _, s := range q.of {
		q.release(s)
	}
}
