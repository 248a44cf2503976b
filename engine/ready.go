package engine

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/benchgraph/benchgraph/device"
)

// readyQueue holds the ready steps by their requests: if the pool refuses a request, no other step with the same
// request is tried, however many there are.
type readyQueue struct {
	buckets map[device.Request]*bucket
	order   []*bucket // the buckets with steps, by their first steps
	length  int
}

// bucket is a heap of steps with the same request, by turn and then by the longest remaining path.
type bucket struct {
	request device.Request
	steps   []*Step
	remains []float64 // by node: seconds on the longest path from it to the end
}

func (b *bucket) Len() int           { return len(b.steps) }
func (b *bucket) Less(i, j int) bool { return b.compare(b.steps[i], b.steps[j]) < 0 }
func (b *bucket) Swap(i, j int)      { b.steps[i], b.steps[j] = b.steps[j], b.steps[i] }
func (b *bucket) Push(s any)         { b.steps = append(b.steps, s.(*Step)) }
func (b *bucket) Pop() any {
	last := b.steps[len(b.steps)-1]
	b.steps = b.steps[:len(b.steps)-1]
	return last
}

func (b *bucket) compare(s, t *Step) int {
	i, j := s.Node.id, t.Node.id
	return cmp.Or(cmp.Compare(s.Node.Turn, t.Node.Turn), cmp.Compare(b.remains[j], b.remains[i]), cmp.Compare(i, j))
}

func (q *readyQueue) push(s *Step, request device.Request, remains []float64) {
	if q.buckets == nil {
		q.buckets = map[device.Request]*bucket{}
	}
	b := q.buckets[request]
	if b == nil {
		b = &bucket{request: request, remains: remains}
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

// next takes the node with the longest remaining path that may go and whose request grant accepts; nil when there is
// none. Quiet nodes come after all others: the host gets quiet by itself once the rest is done, and no build waits for
// a measurement.
func (q *readyQueue) next(may func(*Step) bool, grant func(device.Request) *device.Lease) (*Step, *device.Lease) {
	for _, b := range q.order {
		i := b.first(may)
		if i < 0 {
			continue
		}
		if lease := grant(b.request); lease != nil {
			q.leave(b)
			s := heap.Remove(b, i).(*Step)
			q.enter(b)
			q.length--
			return s, lease
		}
	}
	return nil, nil
}

// take removes and returns all steps with a request, in their order.
func (q *readyQueue) take(request device.Request) []*Step {
	b := q.buckets[request]
	q.leave(b)
	q.length -= len(b.steps)
	var steps []*Step
	for len(b.steps) > 0 {
		steps = append(steps, heap.Pop(b).(*Step))
	}
	return steps
}

// first returns the index of the first step that may start; -1 if there is none among those at the top.
func (b *bucket) first(may func(*Step) bool) int {
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

// leave removes a bucket from the order. The first step of the bucket must be the one by which it was put there.
func (q *readyQueue) leave(b *bucket) {
	if i, found := q.place(b); found {
		q.order = slices.Delete(q.order, i, i+1)
	}
}

func (q *readyQueue) enter(b *bucket) {
	if i, found := q.place(b); !found && len(b.steps) > 0 {
		q.order = slices.Insert(q.order, i, b)
	}
}

func (q *readyQueue) place(b *bucket) (int, bool) {
	if len(b.steps) == 0 {
		return 0, false
	}
	return slices.BinarySearchFunc(q.order, b, func(a, b *bucket) int {
		if a.request.Quiet != b.request.Quiet {
			if b.request.Quiet {
				return -1
			}
			return 1
		}
		return a.compare(a.steps[0], b.steps[0])
	})
}

// remaining returns the priority of each node: the length in seconds of the longest path from the start of the node to
// the end of the plan. A path with a wide node is longer by the time in which all devices could run the narrower nodes:
// a wide node is hard to place, and starts at once at the beginning; but a long chain of narrow nodes comes first.
//
// Nobody knows which chain is long where durations are unknown. The path of a node with devices is then shorter by
// that time: the narrow chains begin first, so that wider nodes run beside the longest of them. A path with a node that
// needs more than half of the devices stays longer, for such a node runs beside few others.
func remaining(p *Plan, pool device.Pool) []float64 {
	seconds, width := make([]float64, len(p.Steps)), make([]int, len(p.Steps))
	work := []float64{0} // device-seconds, by the number of devices of a node
	for i := len(p.Steps) - 1; i >= 0; i-- {
		for _, user := range p.Graph.users[i] {
			seconds[i], width[i] = max(seconds[i], seconds[user]), max(width[i], width[user])
		}
		if s := &p.Steps[i]; s.Action == Run {
			alone, count := max(s.Estimate.Seconds(), 1), s.Node.Resources.GPUs.Count
			seconds[i], width[i] = seconds[i]+alone, max(width[i], count)
			work = append(work, make([]float64, max(0, count+1-len(work)))...)
			work[count] += alone * float64(count)
		}
	}
	narrower, devices := 0.0, 1
	if len(work) > 2 { // else nobody is narrower; and the pool opens the driver
		devices = max(1, pool.Free(device.Request{GPUs: device.GPUs{Count: 1}}).GPUs)
	}
	for wide, own := range work {
		work[wide], narrower = narrower/float64(devices), narrower+own
	}
	for i, n := range width {
		s := &p.Steps[i]
		if s.Estimate == 0 && s.Node.Resources.GPUs.Count > 0 && n <= devices/2 {
			seconds[i] -= work[n]
		} else {
			seconds[i] += work[n]
		}
	}
	return seconds
}
