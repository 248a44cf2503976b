package campaign

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
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
	SaveLock    func(*lockfile.Lock) error
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
		o.Emit = tellQuarantines(p.GPUs, o.Emit)
		defer func() {
			p.GPUs.Tell(nil) // a look may outlast the apply
			a.Left = p.GPUs.Quarantined()
		}()
	}
	if err := p.save(o); err != nil {
		return a, err
	}
	t := newTeller(o.Emit)
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
		result, err := p.run(ctx, plan, o, t)
		if result != nil {
			a.add(result, t.done, err != nil)
		}
		if err != nil {
			return a, err
		}
		if lost := p.usedUp.note(p.Journal, plan, result); lost && p.recalled != nil {
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
	a.sum(p.Drawing, o.RunID, t.done)
	return a, nil
}

// run runs a plan. The result is nil when the plan was not begun.
func (p *Project) run(ctx context.Context, plan *engine.Plan, o ApplyOptions, t teller) (*engine.Result, error) {
	p.Room.Begin(ctx, plan)
	if err := p.RecallCanaries(ctx, plan); err != nil {
		return nil, err
	}
	return engine.Apply(ctx, plan, engine.ApplyOptions{
		Store: p.Store, Journal: p.Journal, Pool: p.withJobs(p.Pool), Room: p.Room, Scratch: p.Store.Scratch,
		LogDir: logs(p.Facts), RunID: o.RunID,
		Parallelism: o.Parallelism, FailFast: o.FailFast, DeviceWait: o.DeviceWait, Emit: t.tell,
	})
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

// add collects the failures of a wave. If the wave was broken off, add counts its nodes, each once: a node that an
// earlier wave ran is done.
func (a *Applied) add(wave *engine.Result, done map[string]bool, broken bool) {
	r := &a.Result
	if broken {
		r.Done = min(len(done), wave.Done+wave.Cached)
		r.Cached, r.Failed, r.Blocked = wave.Done+wave.Cached-r.Done, wave.Failed, wave.Blocked
		r.Skipped = wave.Skipped
	}
	r.Failures = append(r.Failures, wave.Failures...)
	r.NotRun = wave.NotRun
}

// sum counts how all nodes stand, each once. A cached node that a wave ran counts as done.
func (a *Applied) sum(d *tasks.Drawing, run string, done map[string]bool) {
	r := &a.Result
	r.NotRun = 0
	failures := r.Failures
	slices.Reverse(failures) // of a node that failed in several waves, the last failure stands
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
		case s.Action == engine.Cached && len(failures) > 0 && failedAnew(d.Journal, s, run):
			r.Failed++
			tell(s, itself)
		case s.Action == engine.Cached && done[s.Node.Address]:
			r.Done++
		case s.Action == engine.Cached:
			r.Cached++
		case s.Failure != nil && tasks.KnownIssue(s.Failure.Failure):
			r.Skipped++
		case s.Failure != nil:
			r.Failed++
			tell(s, itself)
		case d.Dropped[s.Node.Address].Outcome == stats.Infra && tell(s, gaveUpBy(d.Spec, s)):
			r.Failed++
		case s.Action == engine.Blocked:
			r.Blocked++
		case s.Action == engine.Skip:
			r.Skipped++
		case s.Action == engine.Run: // after the first failure of a FailFast
			r.NotRun++
		}
	}
}

// failedAnew says that the last attempt of a run at the node's work failed, although an earlier result stands: the user
// asked with Replace for another.
func failedAnew(j *journal.Journal, s *engine.Step, run string) bool {
	last := lastAttempt(j, s.Node.Address)
	return last.Run == run && last.Key == s.Key && last.Failure != nil
}

// gaveUpBy recognises the failures of blocks for which the candidate of a benchmark node was left out, since this
// machine failed it in every attempt. The blocks were then measured without it, so that no block stands as failed.
func gaveUpBy(spec *hclspec.Spec, s *engine.Step) func(engine.Failed) bool {
	i := slices.IndexFunc(spec.Benchmarks, func(b hclspec.Benchmark) bool {
		return b.Address.String() == s.Node.Address
	})
	return func(f engine.Failed) bool {
		return i >= 0 && f.Failure.Class.Retried() && f.Failure.Subject == spec.Benchmarks[i].Candidate
	}
}

func (p *Project) save(o ApplyOptions) error {
	p.unsaved = false
	if o.SaveLock == nil || p.Locked {
		return nil
	}
	return o.SaveLock(p.Lock)
}

// usedUp is what was tried as often as it may be in this process.
type usedUp struct {
	given  map[cache.Key]journal.Attempt // infra failures, which later waves do not try again
	remade map[string]int                // by node: how often it ran again because an input was damaged
}

// note keeps the failures of a wave that the journal forgets on purpose: within one apply, attempts that are used up
// are. An input that was found damaged is made again by the next wave, once for each input of the node: a disk that
// loses it again has failed. It reports whether there is such an input.
func (u *usedUp) note(j *journal.Journal, plan *engine.Plan, result *engine.Result) (lost bool) {
	for _, f := range result.Failures {
		step, ok := plan.Step(f.Address)
		if ok && f.Failure.Rule == engine.InputGone && u.remade[f.Address] < len(step.Node.Needs)+len(step.Node.After) {
			u.remade[f.Address]++
			lost = true
			continue
		}
		if last := lastAttempt(j, f.Address); last.Failure != nil && last.Failure.Class.Retried() {
			u.given[last.Key] = last
		}
	}
	return lost
}

// lastAttempt is the last attempt at a node; zero: there is none.
func lastAttempt(j *journal.Journal, address string) (last journal.Attempt) {
	if all := j.Attempts(address); len(all) > 0 {
		last = all[len(all)-1]
	}
	return last
}

// takeOver learns from a wave, after which o.First shows how everything stands, what the lock is to keep. It returns
// whether something asks for another plan: a fix, or a prebuilt wheel that is none.
func (p *Project) takeOver(ctx context.Context, o ApplyOptions) (taught bool, err error) {
	news := append(p.learner.Learn(o.First), p.resolver().PassOver(ctx, o.First)...)
	pinned := p.learner.Pin(o.First)
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
		err = p.Unlike(o)
	}
	return plan, err
}
