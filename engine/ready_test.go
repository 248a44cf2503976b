package engine

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
	"github.com/benchgraph/benchgraph/engine/queue"
)

// requests are what nodes ask for in a campaign: a few kinds of builds, and measurements that want quiet.
func requests() []device.Request {
	var all []device.Request
	for cpus := range 8 {
		all = append(all, device.Request{CPUs: cpus}, device.Request{CPUs: cpus, Memory: 1 << 30},
			device.Request{CPUs: cpus, Quiet: true}, device.Request{CPUs: cpus, GPUs: device.GPUs{Count: 1}})
	}
	return all
}

func anybody(*Step) bool { return true }

// TestReadyQueue: next gives what a search through all waiting steps would find.
func TestReadyQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 40).Draw(t, "count")
		kinds := requests()
		remains := make([]float64, count)
		steps := make([]Step, count)
		q := queue.Queue[*Step]{Compare: byTurn(remains)}
		var waiting []*Step
		for i := range steps {
			request := rapid.SampledFrom(kinds).Draw(t, "request")
			steps[i].Node = &Node{id: i, Resources: request}
			remains[i] = float64(rapid.IntRange(0, 4).Draw(t, "remains"))
		}
		for _, i := range rapid.Permutation(indices(count)).Draw(t, "order") {
			q.Push(&steps[i], steps[i].Node.Resources)
			waiting = append(waiting, &steps[i])
		}
		first := func(s, best *Step) bool {
			a, b := s.Node, best.Node
			if a.Resources.Quiet != b.Resources.Quiet {
				return b.Resources.Quiet
			}
			if remains[a.id] != remains[b.id] {
				return remains[a.id] > remains[b.id]
			}
			return a.id < b.id
		}
		for round := 0; q.Len() > 0; round++ {
			limit := rapid.IntRange(0, 7).Draw(t, "limit")
			grants := func(r device.Request) bool { return r.CPUs <= limit || round > 60 }
			asked := map[device.Request]int{}
			got, lease := q.Next(anybody, func(r device.Request) *device.Lease {
				if asked[r]++; asked[r] > 1 {
					t.Errorf("%+v was asked for twice", r)
				}
				if grants(r) {
					return &device.Lease{}
				}
				return nil
			})
			var want *Step
			for _, s := range waiting {
				if grants(s.Node.Resources) && (want == nil || first(s, want)) {
					want = s
				}
			}
			if got != want || (lease == nil) != (got == nil) {
				t.Fatalf("next = %v, want %v", got, want)
			}
			if got != nil {
				waiting = slices.DeleteFunc(waiting, func(s *Step) bool { return s == got })
			}
			if q.Len() != len(waiting) {
				t.Fatalf("length %d, want %d", q.Len(), len(waiting))
			}
		}
	})
}

// TestPriorities: the builds of wide nodes come first, whatever is known of durations. Of nodes with devices and
// unknown durations, those that need more than half of the devices come first, and then the narrowest. Known durations
// make a path longer by the time in which all devices could run the narrower nodes.
func TestPriorities(t *testing.T) {
	const gpus = 8
	pool, err := device.NewPool(device.Options{CPUs: 4,
		GPUs: gpu.These(gputest.Devices(gpus, "NVIDIA H100", 80<<30))})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		known := rapid.Bool().Draw(t, "known")
		var nodes []*Node
		widths := rapid.SliceOfN(rapid.IntRange(1, gpus), 2, 9).Draw(t, "widths")
		narrower := make([]float64, gpus+1) // device-seconds
		for i, width := range widths {
			build := &Node{Address: fmt.Sprintf("build.%d", i)}
			block := &Node{Address: fmt.Sprintf("block.%d", i), Needs: []*Node{build},
				Resources: device.Request{GPUs: device.GPUs{Count: width}}}
			if known {
				block.Estimate = time.Duration(rapid.IntRange(1, 99).Draw(t, "seconds")) * time.Second
			}
			for wider := width + 1; wider <= gpus; wider++ {
				narrower[wider] += max(block.Estimate.Seconds(), 1) * float64(width)
			}
			nodes = append(nodes, build, block)
		}
		g, err := NewGraph(nodes)
		if err != nil {
			t.Fatal(err)
		}
		p := &Plan{Graph: g, Steps: make([]Step, len(nodes))}
		for i, n := range g.nodes {
			p.Steps[i] = Step{Node: n, Action: Run, Estimate: n.Estimate}
		}
		remains := remaining(p, pool)
		rank := func(width int) int {
			if width > gpus/2 {
				return width
			}
			return -width
		}
		for i, width := range widths {
			build, block := remains[nodes[2*i].id], remains[nodes[2*i+1].id]
			length := max(nodes[2*i+1].Estimate.Seconds(), 1) + narrower[width]/gpus
			if math.Abs(build-1-length) > 1e-6 || known && math.Abs(block-length) > 1e-6 {
				t.Errorf("width %d: build %g, block %g, length %g", width, build, block, length)
			}
			for j, other := range widths {
				if !known && rank(width) > rank(other) && block <= remains[nodes[2*j+1].id] {
					t.Errorf("a node of width %d does not come before one of width %d", width, other)
				}
			}
		}
	})
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// BenchmarkReadyQueue is one decision of the scheduler: a node that could start is added and the best one is taken,
// with 10,000 waiting, of 32 different requests of which half are refused.
func BenchmarkReadyQueue(b *testing.B) {
	const waiting = 10_000
	kinds := requests()
	nodes := make([]Node, waiting)
	steps := make([]Step, waiting)
	remains := make([]float64, waiting)
	q := queue.Queue[*Step]{Compare: byTurn(remains)}
	for i := range steps {
		nodes[i] = Node{id: i, Resources: kinds[i%len(kinds)]}
		steps[i].Node = &nodes[i]
		remains[i] = float64(i * 7919 % waiting)
		q.Push(&steps[i], steps[i].Node.Resources)
	}
	grant := func(r device.Request) *device.Lease {
		if r.CPUs%2 == 0 {
			return nil
		}
		return &device.Lease{}
	}
	b.ReportAllocs()
	for b.Loop() {
		s, _ := q.Next(anybody, grant)
		q.Push(s, s.Node.Resources)
	}
}

// freely is a Room for all.
type freely struct{}

func (freely) TryHold(*Span) string { return "" }
func (freely) Release(*Span)        {}

// BenchmarkSpans is as BenchmarkReadyQueue, with every waiting node in one of 2,500 spans of four: a span is held, its
// nodes are taken, and they wait again. One operation is four decisions.
func BenchmarkSpans(b *testing.B) {
	const waiting, each = 10_000, 4
	kinds := requests()
	p := &Plan{Steps: make([]Step, waiting)}
	remains := make([]float64, waiting)
	spans := make([]Span, waiting/each)
	for i := range p.Steps {
		p.Steps[i].Node = &Node{id: i, Resources: kinds[i%len(kinds)], Spans: []*Span{&spans[i/each]}}
		remains[i] = float64(i * 7919 % waiting)
	}
	q := spansOf(p, freely{})
	park := func(s *Step) { _, s.state = q.admit(s) }
	for i := range p.Steps {
		park(&p.Steps[i])
	}
	waiters := queue.Queue[*Step]{Compare: byTurn(remains)}
	var free []*Step
	q.queue = func(s *Step) {
		s.state, free = ready, append(free, s)
		waiters.Push(s, s.Node.Resources)
	}
	b.ReportAllocs()
	for b.Loop() {
		free = free[:0]
		q.open()
		q.release(q.of[free[0].Node.Spans[0]])
		for range free {
			s, _ := waiters.Next(anybody, func(device.Request) *device.Lease { return &device.Lease{} })
			park(s)
		}
	}
}
