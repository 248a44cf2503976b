package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine/queue"
)

// run is an apply under way. Only the goroutine that called Apply uses it. Attempts and timers send functions for that
// goroutine to call.
//
// A step goes down this list, and from a gate back to the queue:
//
//	settle       all that the node waits for has ended; a step that need not run ends
//	queue        the gates admit the step to the ready queue
//	start        the pool grants a lease for the first step of the queue
//	pass         the step passes the gates
//	launch, try  an attempt runs the task and stores the result
//	conclude     the step ends, or waits for its next attempt
type run struct {
	ApplyOptions
	decider // the plan's steps; their keys, states and reasons change
	plan    *Plan
	jobs    []job // by node
	ctx     context.Context
	signals signals
	result  Result

	counts [excluded + 1]int // steps by state; of ready to storing only
	ended  int               // steps that have ended
	ready  queue.Queue[*Step]
	gates  []gate  // in the order in which steps pass them
	spans  *spans  // one of the gates
	checks *checks // one of the gates

	patience patience
	active   []*attempt // attempts that run and hold a lease
	expected bool       // the store was told to expect more results
	quiet    bool       // an attempt must have the host for itself
	failed   bool       // an attempt was the last one of its step, and failed
	fatal    error      // of the engine itself
}

// job is the progress of a step.
type job struct {
	waits     int            // number of dependencies that have not ended
	tries     int            // attempts so far
	ready     time.Time      // when the step could have started; zero: it cannot yet
	asks      device.Request // the request with which the step was queued
	elsewhere bool           // another apply makes its result
	twins     []*Step        // steps that share its result
}

// signals are the channels of an apply.
type signals struct {
	calls       chan func()   // functions for the goroutine of the apply
	workers     chan func()   // attempts for goroutines that wait for one
	over        chan struct{} // closed at the end of the apply
	interrupted <-chan struct{}
	changed     <-chan struct{} // closed when devices that a step waits for have changed their state
	poll        <-chan time.Time
}

func newRun(ctx context.Context, p *Plan, o ApplyOptions) *run {
	r := &run{
		ApplyOptions: o,
		decider: decider{PlanOptions: p.options, steps: slices.Clone(p.Steps), applying: true,
			ignoreEvicted: true},
		plan: p,
		jobs: make([]job, len(p.Steps)),
		ctx:  ctx,
		signals: signals{calls: make(chan func()), workers: make(chan func()), over: make(chan struct{}),
			interrupted: ctx.Done()},
		ready:    queue.Queue[*Step]{Compare: byTurn(remaining(p, o.Pool))},
		patience: patience{limit: o.DeviceWait},
	}
	r.decider.Store = o.Store
	r.spans, r.checks = spansOf(p, o.Room), newChecks(r)
	r.spans.queue = r.queue
	r.gates = []gate{r.spans, r.checks, &claims{r}}
	return r
}

// close releases spans and ends checks and timers.
func (r *run) close() {
	r.spans.releaseAll()
	close(r.signals.over)
	r.checks.stop()
}

// send makes the goroutine of the apply call f, unless the apply is over: a pause, or a goroutine of a task, may
// outlast it.
func (r *run) send(f func()) {
	select {
	case r.signals.calls <- f:
	case <-r.signals.over:
	}
}

func (r *run) set(s *Step, to state) {
	r.counts[s.state]--
	r.counts[to]++
	s.state = to
}

func (r *run) stopping() bool {
	return r.fatal != nil || r.ctx.Err() != nil || r.FailFast && r.failed
}

// begin counts the dependencies of each node, and settles the nodes without any.
func (r *run) begin() {
	var free []*Step
	for i := range r.steps {
		s, j := &r.steps[i], &r.jobs[i]
		s.found.asked = nil // the plan keeps its own
		j.waits = len(s.Node.Needs) + len(s.Node.Order) + len(s.Node.After)
		if twin := s.found.twin; twin != nil {
			j.waits++
			r.jobs[twin.id].twins = append(r.jobs[twin.id].twins, s)
		}
		if j.waits == 0 {
			free = append(free, s)
		}
	}
	r.settleAll(free)
}

// settleAll settles steps, queues those that must run, and continues with the users that the ended steps free. It uses
// a list instead of recursion, since a chain may be as long as the graph.
func (r *run) settleAll(steps []*Step) {
	for len(steps) > 0 {
		s := steps[0]
		steps = steps[1:]
		if r.settle(s) {
			steps = append(steps, r.finish(s)...)
		} else {
			r.enqueue(s)
		}
	}
}

// finish notes that a step has ended, and returns the steps whose last open dependency it was.
func (r *run) finish(s *Step) []*Step {
	id := s.Node.id
	r.ended++
	r.spans.end(s.Node)
	var free []*Step
	release := func(u *Step) {
		j := &r.jobs[u.Node.id]
		if j.waits--; j.waits == 0 {
			free = append(free, u)
		}
	}
	for _, user := range r.plan.Graph.users[id] {
		release(&r.steps[user])
	}
	for _, twin := range r.jobs[id].twins {
		release(twin)
	}
	return free
}

// enqueue queues a step whose dependencies have ended, or whose pause is over.
func (r *run) enqueue(s *Step) {
	if j := &r.jobs[s.Node.id]; j.ready.IsZero() || !j.elsewhere {
		j.ready = time.Now()
	}
	r.queue(s)
}

// queue puts a step into the ready queue if all gates admit it.
func (r *run) queue(s *Step) {
	asks := s.Node.Resources
	for _, g := range r.gates {
		first, kept := g.admit(s)
		if kept != ready {
			r.set(s, kept)
			return
		}
		if first != (device.Request{}) && asks == s.Node.Resources {
			asks = first
		}
	}
	r.set(s, ready)
	r.jobs[s.Node.id].asks = asks
	r.ready.Push(s, asks)
}

// pause queues a step again after a while.
func (r *run) pause(s *Step, long time.Duration) {
	r.set(s, waiting)
	r.wakeAfter(s, long)
}

func (r *run) wakeAfter(s *Step, long time.Duration) {
	time.AfterFunc(long, func() { r.send(func() { r.enqueue(s) }) })
}

// startable returns the number of steps that wait only for the pool or a span.
func (r *run) startable() int { return r.counts[ready] + r.counts[parked] }

// busy returns the number of attempts and checks that run.
func (r *run) busy() int { return r.counts[running] + r.counts[storing] }

// mostStoring is the greatest number of results that wait for the disk: a slow disk must slow down the apply.
const mostStoring = 64

// hasSlot reports whether one more node may run.
func (r *run) hasSlot() bool {
	return !r.quiet && r.counts[storing] < mostStoring && (r.Parallelism == 0 || r.counts[running] < r.Parallelism)
}

// start starts ready steps until the pool grants nothing more. The next span is held when no ready step can start. It
// is held before quiet nodes start: its images must be made before the host is quiet.
func (r *run) start() {
	for !r.stopping() && r.hasSlot() && r.startable() > 0 {
		find := &search{run: r}
		r.signals.changed = nil
		s, lease := r.ready.Next(find.allows, find.grant)
		if s != nil {
			r.patience.announced = ""
			r.pass(s, lease)
		}
		call(find.vain)
		switch {
		case s != nil || len(find.vain) > 0:
		case find.opened || find.open():
		case r.busy()+r.counts[waiting]+r.counts[ready] == 0 && r.spans.giveUp():
		default:
			r.wait(find.waitsFor)
			return
		}
	}
}

// pass leads a step with a lease through the gates, and launches its next attempt.
func (r *run) pass(s *Step, lease *device.Lease) {
	r.set(s, running)
	var leave []func()
	for _, g := range r.gates {
		out, ok := g.pass(s, lease)
		if !ok {
			call(leave)
			return
		}
		if out != nil {
			leave = append(leave, out)
		}
	}
	r.launch(s, lease, leave)
}

func call(functions []func()) {
	for _, f := range functions {
		f()
	}
}

// search is one search of the ready queue for a step whose request the pool grants.
type search struct {
	*run
	opened   bool                // a span was opened, so more steps are ready
	foreseen bool                // a refused request has a reservation
	first    func() *reservation // the reservation for that request; computed when another step is ready
	vain     []func()            // functions that give up requests, for after the search
	waitsFor string              // what the first refused request waits for
}

// allows reports whether a step may start before the one with the reservation.
func (f *search) allows(s *Step) bool {
	return f.first == nil || f.first().lets(s, f.jobs[s.Node.id].asks)
}

// grant asks the pool for a lease.
func (f *search) grant(q device.Request) *device.Lease {
	if f.opened = f.opened || q.Quiet && f.open(); f.opened {
		return nil
	}
	lease, why := f.Pool.TryAcquire(q)
	if f.hear(q, why) {
		f.vain = append(f.vain, func() { f.giveUp(q, why) })
	}
	if why == nil {
		return lease
	}
	f.signals.changed = cmp.Or(f.signals.changed, why.Changed)
	if !why.Looking {
		f.waitsFor = cmp.Or(f.waitsFor, f.patience.text(why))
	}
	if !f.foreseen && (!why.Outside || settles(q, why)) {
		f.foreseen, f.first = true, sync.OnceValue(func() *reservation { return f.reserve(q, why) })
	}
	return nil
}

// open holds the next span, or notes why it cannot be held.
func (f *search) open() bool {
	opened, why := f.spans.open()
	if why != "" {
		f.waitsFor = why
	}
	return opened
}

// wait sets a timer for the next question to the pool, and reports what the nodes wait for.
func (r *run) wait(what string) {
	if r.signals.poll == nil {
		r.signals.poll = time.After(pollEvery)
	}
	if r.busy() == 0 && what != "" && r.patience.announces(what) {
		r.emit(Event{Type: Note, Reason: Waiting + what})
	}
}

// expecter is a store that makes several results durable together when more results are to be expected.
type expecter interface{ Expect(more bool) }

// expect tells the store whether more results are to be expected beside those that wait for the disk.
func (r *run) expect() {
	more := r.counts[running] > 0
	if store, ok := r.Store.(expecter); ok && more != r.expected {
		r.expected = more
		store.Expect(more)
	}
}

// listen waits until something happens.
func (r *run) listen() {
	select {
	case <-r.signals.interrupted:
		r.signals.interrupted = nil // attempts notice it, too; the loop waits for their ends
	case <-r.signals.changed:
		r.signals.changed = nil
	case <-r.signals.poll:
		r.signals.poll = nil
	case call := <-r.signals.calls:
		call()
	}
}

func (r *run) emit(e Event) {
	if r.Emit != nil {
		e.Time = time.Now()
		r.Emit(e)
	}
}
