package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/device"
)

// run is an apply under way. Only the goroutine that called Apply touches it; attempts and timers send it functions to
// call.
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
	decider // with the steps of the plan, whose keys, states and reasons change as they turn out
	plan    *Plan
	jobs    []job // by node
	ctx     context.Context
	signals signals
	result  Result

	counts  [excluded + 1]int // steps by state; of ready to storing only
	ended   int               // steps that have ended
	ready   readyQueue
	remains []float64 // by node: see remaining
	gates   []gate    // in the order in which steps pass them
	spans   *spans    // one of the gates
	checks  *checks   // one of the gates

	patience patience
	active   []*attempt // those that run and hold something
	expected bool       // the store was told that more results are on their way
	quiet    bool       // an attempt must have the host for itself
	failed   bool       // an attempt was the last one of its step, and failed
	fatal    error      // of the engine itself
}

// job is the progress of a step.
type job struct {
	waits     int            // how many of the nodes that it waits for have not ended
	tries     int            // attempts so far
	ready     time.Time      // when it could have started; zero: it cannot yet
	asks      device.Request // the request that the ready queue has it by
	elsewhere bool           // another apply was found to make its result
	twins     []*Step        // steps that share its result
}

// signals are what an apply listens to.
type signals struct {
	calls       chan func()   // to be called by the goroutine of the apply
	workers     chan func()   // to the goroutines that wait for an attempt
	over        chan struct{} // closed at the end: nobody listens any more
	interrupted <-chan struct{}
	changed     <-chan struct{} // closed when devices that a step waits for were found in another state
	poll        <-chan time.Time
}

func newRun(ctx context.Context, p *Plan, o ApplyOptions) *run {
	r := &run{
		ApplyOptions: o,
		decider: decider{
			PlanOptions: p.options, steps: slices.Clone(p.Steps), applying: true, ignoreEvicted: true,
		},
		plan: p,
		jobs: make([]job, len(p.Steps)),
		ctx:  ctx,
		signals: signals{
			calls: make(chan func()), workers: make(chan func()), over: make(chan struct{}), interrupted: ctx.Done(),
		},
		remains:  remaining(p),
		patience: patience{limit: o.DeviceWait},
	}
	r.decider.Store = o.Store
	r.spans, r.checks = spansOf(p, o.Room), newChecks(r)
	r.spans.queue = r.queue
	r.gates = []gate{r.spans, r.checks, &claims{r}}
	return r
}

// close ends what an apply leaves behind.
func (r *run) close() {
	r.spans.releaseAll()
	close(r.signals.over)
	r.checks.stop()
}

// send has the goroutine of the apply call f, unless the apply is over: a pause, or something that a task left behind,
// may outlast it.
func (r *run) send(f func()) {
	select {
	case r.signals.calls <- f:
	case <-r.signals.over:
	}
}

// set changes the state of a step.
func (r *run) set(s *Step, to state) {
	r.counts[s.state]--
	r.counts[to]++
	s.state = to
}

func (r *run) stopping() bool {
	return r.fatal != nil || r.ctx.Err() != nil || r.FailFast && r.failed
}

// begin counts what each node waits for and ends those that wait for nothing and need no run.
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

// settleAll ends the steps that need no run, puts the others into the ready queue, and goes on with what they free. A
// list instead of recursion: chains may be as long as the graph.
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

// finish notes that a step has ended and returns the steps that waited for it alone.
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

// enqueue takes in a step that could start.
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
	r.ready.push(s, asks, r.remains)
}

// pause queues a step again after a while.
func (r *run) pause(s *Step, long time.Duration) {
	r.set(s, waiting)
	r.wakeAfter(s, long)
}

func (r *run) wakeAfter(s *Step, long time.Duration) {
	time.AfterFunc(long, func() { r.send(func() { r.enqueue(s) }) })
}

// startable returns how many steps wait only for what is scarce.
func (r *run) startable() int { return r.counts[ready] + r.counts[parked] }

// busy returns how many attempts and checks run.
func (r *run) busy() int { return r.counts[running] + r.counts[storing] }

// mostStoring is how many results wait for the disk at most: one that cannot keep up must slow the rest down.
const mostStoring = 64

// hasSlot reports whether one more node may run.
func (r *run) hasSlot() bool {
	return !r.quiet && r.counts[storing] < mostStoring && (r.Parallelism == 0 || r.counts[running] < r.Parallelism)
}

// start starts ready steps until nothing more is granted. A span is held when nothing that needs no further one can
// start, quiet nodes aside: what it stands for is made before the host has to be quiet.
func (r *run) start() {
	for !r.stopping() && r.hasSlot() && r.startable() > 0 {
		find := &search{run: r}
		r.signals.changed = nil
		s, lease := r.ready.next(find.allows, find.grant)
		if s != nil {
			r.patience.announced = ""
			r.pass(s, lease)
		}
		for _, giveUp := range find.vain {
			giveUp()
		}
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

// pass has a step that was granted a lease pass the gates, and starts its next attempt.
func (r *run) pass(s *Step, lease *device.Lease) {
	r.set(s, running)
	var leave []func()
	for _, g := range r.gates {
		out, ok := g.pass(s, lease)
		if !ok {
			return
		}
		if out != nil {
			leave = append(leave, out)
		}
	}
	r.launch(s, lease, leave)
}

// search is one search of the ready queue for a step that the pool grants its request.
type search struct {
	*run
	opened   bool                // a span: there are more steps to search
	foreseen bool                // the first refused request is one for which a time can be told
	first    func() *reservation // for that request; worked out when another step is ready
	vain     []func()            // to be called after the search: requests that are given up
	waitsFor string              // what the first refused request waits for
}

// allows reports whether a step may go before the one that a place is reserved for.
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

// open holds the next span, or notes what that waits for.
func (f *search) open() bool {
	opened, why := f.spans.open()
	if why != "" {
		f.waitsFor = why
	}
	return opened
}

// wait has the pool asked again, and tells what is waited for; nothing is told of a look.
func (r *run) wait(what string) {
	if r.signals.poll == nil {
		r.signals.poll = time.After(pollEvery)
	}
	if r.busy() == 0 && what != "" && r.patience.announces(what) {
		r.emit(Event{Type: Note, Reason: Waiting + what})
	}
}

// expecter is a store that makes results durable together when it is told that more are on their way.
type expecter interface{ Expect(more bool) }

// expect tells the store whether, beside the results that wait for the disk, others are on their way.
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
		r.signals.interrupted = nil // what runs knows it, too; its end is waited for
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
