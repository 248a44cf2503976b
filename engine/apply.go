package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
)

// ApplyOptions are what an apply works with.
type ApplyOptions struct {
	Store       cache.Store
	Journal     *cache.Journal
	Pool        device.Pool
	Room        Room                   // where spans are held; nil: there is room for all
	Scratch     func() (string, error) // makes an empty directory from which Store.Put can take a result
	LogDir      string                 // where the complete logs of attempts go, one file each
	RunID       string                 // names this apply in the journal
	Parallelism int                    // nodes that run at once, at most; 0: as many as the pool grants
	FailFast    bool                   // start nothing more after the first failure
	DeviceWait  time.Duration          // how long a node waits for devices that only others keep from it, before it fails; 0: for ever
	Emit        func(Event)            // called by one goroutine at a time; nil: nobody listens
}

// Result sums up an apply. The sum of the numbers is the number of nodes in the plan.
type Result struct {
	Done     int // ran and succeeded
	Cached   int
	Failed   int // ran and failed, or remembered as failed
	Blocked  int
	Skipped  int
	NotRun   int      // not reached: interrupted, or after a failure with FailFast
	Failures []Failed // in the order in which they happened
	Standing *Plan    // what a plan made now would say, when every node has its result or is declared not to be run; else nil
}

// Failed is one node that failed for good.
type Failed struct {
	Address string
	Failure cache.Failure
	Log     string
}

// DefaultRetry says how failures of a class are tried again when their rule does not say it.
func DefaultRetry(c cache.Class) Retry {
	if c.Retried() {
		return Retry{Attempts: 3, Backoff: time.Second}
	}
	return Retry{Attempts: 1}
}

// Apply runs what the plan says, in one scheduling loop, and returns when nothing of it is running any more. Failures
// of nodes are in the Result; an error means that the engine itself could not go on. When ctx ends, what runs is
// ended, nothing more is started, and the error is ctx's cause.
func Apply(ctx context.Context, p *Plan, o ApplyOptions) (*Result, error) {
	r := &run{
		ApplyOptions: o,
		plan:         p,
		steps:        slices.Clone(p.Steps),
		ctx:          ctx,
		interrupted:  ctx.Done(),
		waits:        make([]int, len(p.Steps)),
		ends:         make([]end, len(p.Steps)),
		tries:        make([]int, len(p.Steps)),
		twins:        map[*Node][]*Step{},
		messages:     make(chan message),
		idle:         make(chan func()),
		over:         make(chan struct{}),
		remains:      remaining(p),
		spans:        spansOf(p, o.Room),
		patience:     patience{limit: o.DeviceWait},
		inputs:       verifiedInputs{store: o.Store},
		elsewhere:    map[*Step]bool{},
		checked:      map[cache.Key]bool{},
		checking:     map[cache.Key][]*Step{},
	}
	var endChecks context.CancelFunc
	r.checks, endChecks = context.WithCancel(ctx)
	defer endChecks()
	defer close(r.over)
	defer r.spans.releaseAll()
	r.begin()
	for {
		r.start()
		r.expect()
		if r.stopping() {
			endChecks()
		}
		if r.running == 0 && (r.stopping() || r.asleep == 0 && r.startable() == 0) {
			break
		}
		r.listen()
	}
	r.result.NotRun = len(p.Steps) - r.ended
	if r.fatal != nil {
		return &r.result, r.fatal
	}
	if ctx.Err() != nil {
		return &r.result, context.Cause(ctx)
	}
	r.result.Standing = r.standing()
	return &r.result, nil
}

// standing is the plan as it turned out, if nothing is left to be found out.
func (r *run) standing() *Plan {
	for i := range r.ends {
		if e := &r.ends[i]; e.state != excluded && (e.state != present || e.meta == nil) {
			return nil
		}
	}
	for i := range r.steps {
		s, e := &r.steps[i], &r.ends[i]
		if e.state == excluded {
			continue
		}
		*s = Step{Node: s.Node, Action: Cached, Reason: upToDate, Key: s.Key, Text: s.Text, entry: e.meta}
		if e.meta.Key != s.Key {
			s.Reason = sameContent
		}
	}
	return &Plan{Graph: r.plan.Graph, Steps: r.steps, options: r.plan.options}
}

// run is an apply under way. Only the goroutine that called Apply touches it; attempts report on messages.
type run struct {
	ApplyOptions
	plan     *Plan
	steps    []Step // of the plan, with the keys and reasons as they turn out
	ctx      context.Context
	waits    []int // by node: how many of those it waits for have not ended
	ends     []end
	tries    []int // by node: attempts so far
	ended    int
	twins    map[*Node][]*Step // steps that share the result of a node of this plan
	ready    readyQueue
	spans    spans
	patience patience
	remains  []float64
	inputs   verifiedInputs
	checked  map[cache.Key]bool    // large inputs that were checked before devices were granted
	checking map[cache.Key][]*Step // those that are being checked, with the steps that wait for that
	checks   context.Context       // of these checks: it ends when nothing more is to be started
	text     cache.Description     // of one node after the other
	result   Result

	messages    chan message
	idle        chan func()   // to the goroutines that wait for an attempt
	over        chan struct{} // closed at the end: nobody listens to messages any more
	interrupted <-chan struct{}
	changed     <-chan struct{} // closed when devices that somebody waits for were found in another state
	poll        <-chan time.Time
	waitsFor    string    // what a node was last told to wait for
	toldAt      time.Time // when that was
	running     int
	active      []*attempt     // what runs and holds something
	waiting     int            // of these: only for the disk, which takes no slot
	expected    bool           // the store was told that more results are on their way
	quiet       bool           // what runs must have the host for itself
	asleep      int            // nodes that wait for their next attempt, or for another apply
	elsewhere   map[*Step]bool // another apply was found to make them
	failed      bool
	fatal       error
}

// end is how a node ended.
type end struct {
	known   bool
	ready   time.Time // when it could have started; zero: it cannot yet
	state   state
	text    string // as it enters the keys of what comes after
	failure *cache.Failure
	attempt string      // with failure: the ID of the attempt
	meta    *cache.Meta // with a result
	key     cache.Key
}

// message is what an attempt or a timer tells the loop.
type message struct {
	step    *Step
	event   *Event   // something within an attempt
	waits   *attempt // it waits only for the disk
	attempt *attempt // an attempt is over
	checked *checked // the large inputs of step were checked
	// None of these: the pause before step's next attempt is over.
}

// send tells the loop something, unless the apply is over: a pause, or something that a task left behind, may outlast it.
func (r *run) send(m message) {
	select {
	case r.messages <- m:
	case <-r.over:
	}
}

func (r *run) stopping() bool {
	return r.fatal != nil || r.ctx.Err() != nil || r.FailFast && r.failed
}

// begin counts what each node waits for and ends those that wait for nothing and need no run.
func (r *run) begin() {
	var free []*Step
	for i := range r.steps {
		s := &r.steps[i]
		r.waits[i] = len(s.Node.Needs) + len(s.Node.Order) + len(s.Node.After)
		if s.twin != nil {
			r.waits[i]++
			r.twins[s.twin] = append(r.twins[s.twin], s)
		}
		if r.waits[i] == 0 {
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
		if e := r.settle(s); e.known {
			steps = append(steps, r.finish(s, e)...)
		} else {
			r.enqueue(s)
		}
	}
}

// enqueue takes in a step that could start.
func (r *run) enqueue(s *Step) {
	if e := &r.ends[s.Node.id]; e.ready.IsZero() || !r.elsewhere[s] {
		e.ready = time.Now()
	}
	if !r.spans.park(s) {
		r.queue(s)
	}
}

// startable is how many steps wait only for what is scarce.
func (r *run) startable() int { return r.ready.length + len(r.spans.parked) }

// finish records how a step ended and returns the steps that waited for it alone.
func (r *run) finish(s *Step, e end) []*Step {
	id := s.Node.id
	r.ends[id] = e
	r.ended++
	r.spans.end(s.Node)
	var free []*Step
	release := func(u *Step) {
		if r.waits[u.Node.id]--; r.waits[u.Node.id] == 0 {
			free = append(free, u)
		}
	}
	for _, user := range r.plan.Graph.users[id] {
		release(&r.steps[user])
	}
	for _, twin := range r.twins[s.Node] {
		release(twin)
	}
	return free
}

// mostWaiting is how many results wait for the disk at most: one that cannot keep up must slow the rest down.
const mostWaiting = 64

// hasSlot says whether one more node may run.
func (r *run) hasSlot() bool {
	return !r.quiet && r.waiting < mostWaiting && (r.Parallelism == 0 || r.running-r.waiting < r.Parallelism)
}

// start starts ready steps until nothing more is granted. A span is held when nothing that needs no further one can
// start, quiet nodes aside: what it stands for is made before the host has to be quiet.
func (r *run) start() {
	for !r.stopping() && r.hasSlot() && r.startable() > 0 {
		opened, foreseen, waitsFor := false, false, ""
		r.changed = nil
		first := func() *reservation { return nil } // for the first whose turn can be foreseen; worked out when somebody else is ready
		var vain []func()
		var granted device.Request
		s, lease := r.ready.next(func(s *Step) bool { return first().lets(s, r.asks(s)) }, func(q device.Request) *device.Lease {
			if opened = opened || q.Quiet && r.open(&waitsFor); opened {
				return nil
			}
			lease, why := r.Pool.TryAcquire(q)
			if r.hear(q, why) {
				vain = append(vain, func() { r.giveUp(q, why) })
			}
			if why == nil {
				granted = q
				return lease
			}
			r.changed = cmp.Or(r.changed, why.Changed)
			if !why.Looking {
				waitsFor = cmp.Or(waitsFor, r.patience.text(why))
			}
			if !foreseen && (!why.Outside || settles(q, why)) {
				foreseen, first = true, sync.OnceValue(func() *reservation { return r.reserve(q, why) })
			}
			return nil
		})
		if s != nil {
			r.waitsFor = ""
			if granted == s.Node.Resources {
				r.claim(s, lease)
			} else {
				r.check(s, lease)
			}
		}
		for _, giveUp := range vain {
			giveUp()
		}
		switch {
		case s != nil || len(vain) > 0:
		case opened || r.open(&waitsFor):
		case r.running+r.asleep+r.ready.length == 0 && r.spans.giveUp():
		default:
			r.wait(waitsFor)
			return
		}
	}
}

// claimer is a store that several applies share. Only one of them makes the result of a key at a time.
type claimer interface {
	// Claim reserves a key for this apply until release is called. It reports false if another apply has reserved the key.
	Claim(cache.Key) (release func(), ok bool)
}

// claim starts a step that holds its lease. If another apply is making the result, the step waits for the result; if another apply
// has made it since the plan, the step ends.
func (r *run) claim(s *Step, lease *device.Lease) {
	release, ok := func() {}, true
	if store, shared := r.Store.(claimer); shared {
		release, ok = store.Claim(s.Key)
	}
	if !ok {
		lease.Release()
		if !r.elsewhere[s] {
			r.elsewhere[s] = true
			r.emit(Event{Type: Note, Address: s.Node.Address, Key: s.Key, Reason: Waiting + "another apply makes it"})
		}
		r.sleep(s, pollEvery)
		return
	}
	if s.Action == Run && s.entry == nil && s.damage == "" && s.gone == "" && !s.forced && !s.follows {
		if entry, ok := r.look(s, func() (cache.Entry, error) { return peek(r.ctx, r.Store, s.Key) }); ok {
			release()
			lease.Release()
			r.settleAll(r.finish(s, r.cached(s, &entry.Meta, "up to date: another apply has made it")))
			return
		}
		if r.stopping() {
			release()
			lease.Release()
			return
		}
	}
	r.launch(s, lease, release)
}

// sleep queues a step again after a pause.
func (r *run) sleep(s *Step, pause time.Duration) {
	r.asleep++
	time.AfterFunc(pause, func() { r.send(message{step: s}) })
}

// wake queues a step after its sleep. While another apply makes the result, the step sleeps again and asks for no devices.
func (r *run) wake(s *Step) {
	r.asleep--
	if r.elsewhere[s] {
		release, ok := r.Store.(claimer).Claim(s.Key)
		if !ok {
			r.sleep(s, pollEvery)
			return
		}
		release()
	}
	r.enqueue(s)
}

// open holds the next span, or says what it waits for.
func (r *run) open(waitsFor *string) bool {
	free, why := r.spans.open()
	for _, s := range free {
		r.queue(s)
	}
	if why != "" {
		*waitsFor = why
	}
	return len(free) > 0
}

// pollEvery is how often a pool is asked again: another process may hold what is missing, and does not tell us when it
// gives it back, nor does a disk; and patience comes to an end.
const pollEvery = 500 * time.Millisecond

// wait has the pool asked again, and tells what is waited for; nothing is told of a look.
func (r *run) wait(what string) {
	if r.poll == nil {
		r.poll = time.After(pollEvery)
	}
	if r.running == 0 && what != "" && what != r.waitsFor && (r.waitsFor == "" || time.Since(r.toldAt) >= toldEvery) {
		r.waitsFor, r.toldAt = what, time.Now()
		r.emit(Event{Type: Note, Reason: Waiting + what})
	}
}

// expecter is a store that makes results durable together when it is told that more are on their way.
type expecter interface{ Expect(more bool) }

// expect tells the store whether, beside the results that wait for the disk, others are on their way.
func (r *run) expect() {
	more := r.running > r.waiting
	if store, ok := r.Store.(expecter); ok && more != r.expected {
		r.expected = more
		store.Expect(more)
	}
}

// listen waits until something happens.
func (r *run) listen() {
	select {
	case <-r.interrupted:
		r.interrupted = nil // what runs knows it, too; its end is waited for
	case <-r.changed:
		r.changed = nil
	case <-r.poll:
		r.poll = nil
	case m := <-r.messages:
		switch {
		case m.event != nil:
			r.emit(*m.event)
		case m.waits != nil:
			r.waiting++
			r.forget(m.waits)
		case m.attempt != nil:
			r.running--
			r.forget(m.attempt)
			if m.attempt.waits {
				r.waiting--
			}
			r.quiet = false
			m.attempt.lease.Release()
			m.attempt.unclaim()
			r.conclude(m.step, m.attempt)
		case m.checked != nil:
			r.endCheck(m.step, m.checked)
		default:
			r.wake(m.step)
		}
	}
}

// forget takes an attempt off the list of those that hold something.
func (r *run) forget(a *attempt) {
	if i := slices.Index(r.active, a); i >= 0 {
		r.active = slices.Delete(r.active, i, i+1)
	}
}

func (r *run) emit(e Event) {
	if r.Emit != nil {
		e.Time = time.Now()
		r.Emit(e)
	}
}

// remaining is, for each node, how much depends on its early start: the length in seconds of the longest path from its
// start to the end of the plan, and before that how many devices the widest node on a path needs. Wide nodes are hard to
// place among others; at the beginning they cost nothing.
func remaining(p *Plan) []float64 {
	const wider = 1e9 // seconds: no path is as long
	seconds, width := make([]float64, len(p.Steps)), make([]int, len(p.Steps))
	for i := len(p.Steps) - 1; i >= 0; i-- {
		for _, user := range p.Graph.users[i] {
			seconds[i], width[i] = max(seconds[i], seconds[user]), max(width[i], width[user])
		}
		if s := &p.Steps[i]; s.Action == Run {
			seconds[i] += max(s.Estimate.Seconds(), 1)
			width[i] = max(width[i], s.Node.Resources.GPUs.Count)
		}
	}
	for i, n := range width {
		seconds[i] += wider * float64(max(n-1, 0))
	}
	return seconds
}
