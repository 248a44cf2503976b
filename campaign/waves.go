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

// ApplyOptions configure an apply.
type ApplyOptions struct {
	PlanOptions
	First       *engine.Plan // plan of the first wave, if one was just made with the same options; nil: Apply makes it
	RunID       string
	Parallelism int
	FailFast    bool
	DeviceWait  time.Duration // how long to wait for devices that others keep busy; 0: for ever
	Emit        func(engine.Event)
	SaveLock    func(*lockfile.Lock) error
}

// Applied is the outcome of an apply.
type Applied struct {
	Result engine.Result // over all waves
	Plan   *engine.Plan  // how everything stands afterwards
	Waves  int
	Left   []gpu.Quarantine // devices that were left out
}

// Apply runs waves until nothing is left to do. A wave may teach fixes, drop members that cannot be built, or ask for
// more blocks; the plan of the next wave takes these into account.
func (p *Project) Apply(ctx context.Context, o ApplyOptions) (*Applied, error) {
	a := &Applied{}
	if p.GPUs != nil {
		o.Emit = tellQuarantines(p.GPUs, o.Emit)
		defer func() {
			p.GPUs.Tell(nil) // a device may be inspected after the apply
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
		if damaged := p.usedUp.note(p.Journal, plan, result); damaged && p.recalled != nil {
			// The node that made the lost input must run again, and the memo may not have that node's task.
			if diags := p.evaluate(ctx); diags.HasErrors() {
				return a, diags
			}
		}
		o.Replace, o.RetryFailed = refused(plan), false
		switch {
		case plan.Counts()[engine.Run] == 0:
			o.First = plan // nothing ran, so a new plan would be the same
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
			o.First = nil // the lessons change the plan
		}
	}
	a.sum(p.Drawing, o.RunID, t.done)
	return a, nil
}

// run runs a plan. The result is nil if the run did not begin.
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

// refused selects nodes that Replace selected and that cannot run, so that the next plan shows them as blocked, too;
// nil if there are none.
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

// add collects the failures of a wave. For a wave that was broken off, it also counts nodes, each once: a node that an
// earlier wave ran counts as done.
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

// sum counts all nodes by their state, each once. A cached node that a wave ran counts as done.
func (a *Applied) sum(d *tasks.Drawing, run string, done map[string]bool) {
	r := &a.Result
	r.NotRun = 0
	failures := r.Failures
	slices.Reverse(failures) // of a node that failed in several waves, the last failure stands
	r.Failures = nil
	addFailure := func(s *engine.Step, match func(engine.Failed) bool) bool {
		i := slices.IndexFunc(failures, match)
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
			addFailure(s, itself)
		case s.Action == engine.Cached && done[s.Node.Address]:
			r.Done++
		case s.Action == engine.Cached:
			r.Cached++
		case s.Failure != nil && tasks.KnownIssue(s.Failure.Failure):
			r.Skipped++
		case s.Failure != nil:
			r.Failed++
			addFailure(s, itself)
		case d.Dropped[s.Node.Address].Outcome == stats.Infra && addFailure(s, gaveUpBy(d.Spec, s)):
			r.Failed++
		case s.Action == engine.Blocked:
			r.Blocked++
		case s.Action == engine.Skip:
			r.Skipped++
		case s.Action == engine.Run: // FailFast ended the apply before this node ran
			r.NotRun++
		}
	}
}

// failedAnew reports whether the last attempt of the run at the node's work failed, although an earlier result is
// stored: the user asked for another result with Replace.
func failedAnew(j *journal.Journal, s *engine.Step, run string) bool {
	last := lastAttempt(j, s.Node.Address)
	return last.Run == run && last.Key == s.Key && last.Failure != nil
}

// gaveUpBy returns a function that matches the failures for which the candidate of a benchmark node was dropped: this
// machine failed the candidate in every attempt at its blocks. The blocks were then measured without the candidate, so
// no block counts as failed.
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

// usedUp has the attempts that one process must not repeat.
type usedUp struct {
	given  map[cache.Key]journal.Attempt // last attempts that failed and are not tried again by later waves, by key
	remade map[string]int                // by address: how often the node ran again because an input was damaged
}

// note records the failures of a wave that the journal forgets on purpose: within one apply, no wave tries them again.
// The next wave makes a damaged input again, at most once for each input of the node: a disk that damages it again has
// failed. It reports whether there is such an input.
func (u *usedUp) note(j *journal.Journal, plan *engine.Plan, result *engine.Result) (damaged bool) {
	for _, f := range result.Failures {
		step, ok := plan.Step(f.Address)
		if ok && f.Failure.Rule == engine.InputGone && u.remade[f.Address] < len(step.Node.Needs)+len(step.Node.After) {
			u.remade[f.Address]++
			damaged = true
			continue
		}
		if last := lastAttempt(j, f.Address); last.Failure != nil && last.Failure.Class.Retried() {
			u.given[last.Key] = last
		}
	}
	return damaged
}

// lastAttempt returns the last attempt at a node; zero if there is none.
func lastAttempt(j *journal.Journal, address string) (last journal.Attempt) {
	if all := j.Attempts(address); len(all) > 0 {
		last = all[len(all)-1]
	}
	return last
}

// takeOver adds the lessons of a wave to the lock; o.First is a plan that was made after the wave. It reports whether a
// lesson changes the plan: a fix, or a prebuilt wheel that cannot be used.
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

// planToMeasure is Plan for an apply: it also returns the error of Unlike.
func (p *Project) planToMeasure(ctx context.Context, o PlanOptions) (*engine.Plan, error) {
	plan, err := p.Plan(ctx, o)
	if err == nil {
		err = p.Unlike(o)
	}
	return plan, err
}
