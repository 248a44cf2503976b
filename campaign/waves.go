package campaign

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/tasks"
)

// ApplyOptions say what an apply does and whom it tells.
type ApplyOptions struct {
	PlanOptions
	First       *engine.Plan // the first wave's plan, made just now with the same options; nil: it is made
	RunID       string
	Parallelism int
	FailFast    bool
	DeviceWait  time.Duration // for devices that others keep busy; 0: for ever
	Emit        func(engine.Event)
	SaveLock    func(*hclspec.Lock) error
}

// Applied is what an apply did.
type Applied struct {
	Result engine.Result // over all waves
	Plan   *engine.Plan  // as everything stands afterwards
	Waves  int
	Left   []gpu.Quarantine // devices that were left out
}

// Apply runs waves until nothing is left to be done: each wave may teach fixes, drop members that cannot be built, or
// ask for more blocks, and the next one plans again with that.
func (p *Project) Apply(ctx context.Context, o ApplyOptions) (*Applied, error) {
	a := &Applied{}
	if p.GPUs != nil {
		o.Emit = p.tellQuarantines(o.Emit)
		defer func() {
			p.GPUs.Tell(nil) // a look may outlast the apply
			a.Left = p.GPUs.Quarantined()
		}()
	}
	if err := p.save(o); err != nil {
		return a, err
	}
	told := map[string]bool{}
	if o.First != nil {
		told = make(map[string]bool, len(o.First.Steps))
	}
	for {
		plan, err := o.First, error(nil)
		if plan == nil {
			plan, err = p.planToMeasure(ctx, o.PlanOptions)
		}
		if err != nil {
			return a, err
		}
		a.Plan, o.First = plan, nil
		if p.unsaved {
			if err := p.save(o); err != nil {
				return a, err
			}
		}
		if a.Waves > 0 && plan.Counts()[engine.Run] == 0 {
			break
		}
		a.Waves++
		p.Room.Begin(ctx, plan)
		if err := p.RecallCanaries(ctx, plan); err != nil {
			return a, err
		}
		result, err := engine.Apply(ctx, plan, p.engineOptions(o, told))
		if err != nil { // every node of the wave is counted; what an earlier one ran counts as done
			r := &a.Result
			r.Cached, r.Failed, r.Blocked, r.Skipped = max(result.Cached-r.Done, 0), result.Failed, result.Blocked,
				result.Skipped
		}
		a.Result.Done += result.Done
		a.Result.Failures = append(a.Result.Failures, result.Failures...)
		a.Result.NotRun = result.NotRun
		if err != nil {
			return a, err
		}
		if lost := p.remember(plan, result); lost && p.recalled != nil {
			// What made the input is to run again, and may be a node that stands.
			if diags := p.evaluate(ctx); diags.HasErrors() {
				return a, diags
			}
		}
		o.Replace, o.RetryFailed = refused(plan), false
		switch {
		case plan.Counts()[engine.Run] == 0:
			o.First = plan // nothing ran, so another one would say the same
		case result.Standing != nil && len(p.Groups) == 0 && o.Replace == nil:
			o.First = result.Standing
		default:
			if o.First, err = p.planToMeasure(ctx, o.PlanOptions); err != nil {
				return a, err
			}
		}
		taught, err := p.takeOver(ctx, o)
		if err != nil {
			return a, err
		}
		if o.FailFast && result.Failed > 0 {
			a.Plan = o.First
			break
		}
		if taught {
			o.First = nil // what was learnt asks for another plan
		}
	}
	p.sum(a, o.RunID)
	return a, nil
}

// refused selects what was to be run anew and cannot be, so that the next plan says so, too; nil: nothing.
func refused(plan *engine.Plan) func(address string) bool {
	all := map[string]bool{}
	for i := range plan.Steps {
		s := &plan.Steps[i]
		if _, stored := s.Stored(); stored && s.Action == engine.Blocked {
			all[s.Node.Address] = true
		}
	}
	if len(all) == 0 {
		return nil
	}
	return func(address string) bool { return all[address] }
}

// tellQuarantines has devices that are left out told among the events. They are found by whoever looks at a device, so
// that emit is called by several goroutines, one after the other.
func (p *Project) tellQuarantines(emit func(engine.Event)) func(engine.Event) {
	if emit == nil {
		return nil
	}
	var mu sync.Mutex
	one := func(e engine.Event) {
		mu.Lock()
		defer mu.Unlock()
		emit(e)
	}
	p.GPUs.Tell(func(q gpu.Quarantine) {
		one(engine.Event{Type: engine.Note, Time: time.Now(), Reason: q.String(),
			Data: map[string]any{"quarantine": q}})
	})
	return one
}

// failedAnew says that the last attempt of a run at the node's work failed, although an earlier result stands: the user
// asked with Replace for another.
func (p *Project) failedAnew(s *engine.Step, run string) bool {
	last, ok := p.lastAttempt(s.Node.Address)
	return ok && last.Run == run && last.Key == s.Key && last.Failure != nil
}

func (p *Project) lastAttempt(address string) (last cache.Attempt, ok bool) {
	attempts := p.Journal.Attempts(address)
	if ok = len(attempts) > 0; ok {
		last = attempts[len(attempts)-1]
	}
	return last, ok
}

// sum counts how everything stands: what an earlier wave ran is cached by now, and counts as done.
func (p *Project) sum(a *Applied, run string) {
	r := &a.Result
	r.Cached = -r.Done
	failures := r.Failures
	r.Failures = nil
	tell := func(s *engine.Step, of func(engine.Failed) bool) bool {
		i := slices.IndexFunc(failures, of)
		if i >= 0 {
			f := failures[i]
			f.Address = s.Node.Address
			r.Failures = append(r.Failures, f)
		}
		return i >= 0
	}
	for i := range a.Plan.Steps {
		s := &a.Plan.Steps[i]
		itself := func(f engine.Failed) bool { return f.Address == s.Node.Address }
		switch {
		case s.Action == engine.Cached && len(failures) > 0 && p.failedAnew(s, run):
			r.Failed++
			tell(s, itself)
		case s.Action == engine.Cached:
			r.Cached++
		case s.Failure != nil && tasks.KnownIssue(s.Failure.Failure):
			r.Skipped++
		case s.Failure != nil:
			r.Failed++
			tell(s, itself)
		case p.gaveUp(s) && tell(s, p.gaveUpBy(s)):
			r.Failed++
		case s.Action == engine.Blocked:
			r.Blocked++
		case s.Action == engine.Skip:
			r.Skipped++
		}
	}
	r.Cached = max(r.Cached, 0)
}

// gaveUp says that a candidate was left out of its blocks because this machine failed it in every attempt. The blocks
// were then measured without it, so that no block stands as failed.
func (p *Project) gaveUp(s *engine.Step) bool {
	gap, out := p.Dropped[s.Node.Address]
	return out && gap.Outcome == stats.Infra
}

// gaveUpBy recognises the failures of blocks for which the candidate of a benchmark node was left out.
func (p *Project) gaveUpBy(s *engine.Step) func(engine.Failed) bool {
	i := slices.IndexFunc(p.Spec.Benchmarks, func(b hclspec.Benchmark) bool {
		return b.Address.String() == s.Node.Address
	})
	return func(f engine.Failed) bool {
		return i >= 0 && f.Failure.Class.Retried() && f.Failure.Subject == p.Spec.Benchmarks[i].Candidate
	}
}

func (p *Project) save(o ApplyOptions) error {
	p.unsaved = false
	if o.SaveLock == nil || p.Locked {
		return nil
	}
	return o.SaveLock(p.Lock)
}

// engineOptions passes events on, each node's standing state and each verdict once: a later wave plans the same nodes
// and judges the same blocks again.
func (p *Project) engineOptions(o ApplyOptions, told map[string]bool) engine.ApplyOptions {
	emit := func(e engine.Event) {
		if e.Type == engine.NodeFailed && tasks.KnownIssue(e.Failure) {
			e.Type, e.Reason, e.Failure = engine.NodeSkipped, findings.Explain(e.Failure), nil
		}
		if e.Type == engine.NodeCached || e.Type == engine.NodeSkipped || e.Type == engine.NodeFailed &&
			e.Attempt == 0 {
			if told[e.Address] {
				return
			}
		}
		if e.Type == engine.VerdictMade {
			if e.Data["outcome"] == stats.NotRun {
				return // a later wave measures it, or there is nothing to tell
			}
			verdict := fmt.Sprint(e.Data["compare"], e.Data["benchmark"], e.Data["candidate"], e.Data["outcome"],
				e.Data["blocks"])
			if told[verdict] {
				return
			}
			told[verdict] = true
		}
		if e.Type == engine.Note {
			note := e.Address + "\x00" + e.Reason
			if told[note] {
				return
			}
			told[note] = true
		}
		switch e.Type {
		case engine.NodeCached, engine.NodeDone, engine.NodeFailed:
			told[e.Address] = true
		}
		if o.Emit != nil {
			o.Emit(e)
		}
	}
	pool := p.Pool
	if p.Remote != nil {
		pool = p.Remote.Pool(pool)
	}
	return engine.ApplyOptions{
		Store: p.Store, Journal: p.Journal, Pool: pool, Room: p.Room, Scratch: p.Store.Scratch,
		LogDir: filepath.Join(p.StateDir, "logs"), RunID: o.RunID,
		Parallelism: o.Parallelism, FailFast: o.FailFast, DeviceWait: o.DeviceWait, Emit: emit,
	}
}

// remember keeps the failures that the journal forgets on purpose: within one apply, attempts that are used up are. An
// input that was found damaged is made again by the next wave, once for each input of the node: a disk that loses it
// again has failed. It reports whether there is such an input.
func (p *Project) remember(plan *engine.Plan, result *engine.Result) (lost bool) {
	for _, f := range result.Failures {
		step, ok := plan.Step(f.Address)
		if ok && f.Failure.Rule == engine.InputGone && p.remade[f.Address] < len(step.Node.Needs)+len(step.Node.After) {
			p.remade[f.Address]++
			lost = true
			continue
		}
		if last, ok := p.lastAttempt(f.Address); ok && last.Failure != nil && last.Failure.Class.Retried() {
			p.given[last.Key] = last
		}
	}
	return lost
}

// takeOver learns from a wave, after which o.First shows how everything stands, what the lock is to keep. It returns
// whether something asks for another plan: a fix, or a prebuilt wheel that is none.
func (p *Project) takeOver(ctx context.Context, o ApplyOptions) (taught bool, err error) {
	news := append(p.learn(o.First), p.resolver().passOver(ctx, o.First)...)
	pinned := p.pin(o.First)
	if len(news) == 0 && !pinned {
		return false, nil
	}
	for _, text := range news {
		if o.Emit != nil {
			o.Emit(engine.Event{Type: engine.Note, Reason: text})
		}
	}
	if p.Locked {
		return false, fmt.Errorf("the lock file would change, which -locked forbids: %s", strings.Join(news, "; "))
	}
	if len(news) > 0 {
		p.next.Remeasure()
	}
	return len(news) > 0, p.save(o)
}

// planToMeasure is Plan for what is to be done, not shown.
func (p *Project) planToMeasure(ctx context.Context, o PlanOptions) (*engine.Plan, error) {
	plan, err := p.Plan(ctx, o)
	if err == nil {
		err = p.unlike
	}
	return plan, err
}
