// Package campaign opens a project on disk, finds out the facts that its graph is made from, and plans and applies it.
//
// The graph depends on what is already known: how many blocks the verdicts so far ask for, which members of a block
// cannot be built, which fixes were learnt. So planning goes in rounds until nothing changes, and applying goes in
// waves; the graph of a wave is static.
package campaign

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/campaign/memo"
	"github.com/benchgraph/benchgraph/campaign/pin"
	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/campaign/round"
	"github.com/benchgraph/benchgraph/campaign/snapshot"
	"github.com/benchgraph/benchgraph/campaign/survey"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/remote/pool"
	"github.com/benchgraph/benchgraph/source/history"
	"github.com/benchgraph/benchgraph/tasks"
)

// Loader evaluates the project's files with a lock.
type Loader func(*lockfile.Lock) (*hclspec.Spec, hcl.Diagnostics)

// Config is what a project works with. All of it comes from main; nothing else is read from the environment.
type Config struct {
	tasks.Config
	Options
}

// Options say how a project is read, pinned and remembered.
type Options struct {
	Load     Loader
	History  *history.Cache // what Load asks of the histories of repos; nil: nothing
	Locked   bool           // refuse to change the lock
	Upgrade  bool           // names of revisions stand for what they stand for now, whatever a mirror knows of them
	MemoFile string         // where what a plan found out is kept for the next process; empty: nowhere
	Basis    string         // what, beside files, a plan depends on: this program, its flags, variables
	Known    memo.Known     // what a remembered plan that does not hold knows of the store, for the first plan
	// what the machine of the project found out; nil: this is that machine
	Found *snapshot.Found
}

// A Project is the spec of a file with its lock, and the state of the rounds and waves that plan and apply the spec.
// The embedded drawing is the graph of the last round.
type Project struct {
	Options
	*tasks.Drawing
	next     tasks.Choice        // what the next round's graph is made from
	findings []preflight.Finding // of the preflight
	recalled *memo.Recalled      // the remembered plan of which only what has changed is made again; nil: none

	warnings hcl.Diagnostics // of the last evaluation of the files
	learner  round.Learner
	unsaved  bool           // the lock has fixes that were learnt from remembered failures
	missed   []cache.Key    // keys of blocks that were looked up before members were dropped
	looks    map[string]int // by group: the blocks of its last look
	usedUp   usedUp         // by waves of this process
	partial  bool           // the last plan leaves out nodes that wait for another machine
}

// newProject returns a project whose files are not evaluated yet.
func newProject(o Options, f *tasks.Facts) *Project {
	return &Project{
		Options: o, Drawing: &tasks.Drawing{Facts: f}, next: tasks.NewChoice(),
		learner: round.Learner{Lock: f.Lock, Logs: logs(f)},
		looks:   map[string]int{},
		usedUp:  usedUp{map[cache.Key]journal.Attempt{}, map[string]int{}},
	}
}

// logs is the directory of the logs of attempts.
func logs(f *tasks.Facts) string { return filepath.Join(f.StateDir, "logs") }

// Open takes over the lock, evaluates the files, resolves what the lock does not pin and evaluates them again with the
// pins.
func Open(ctx context.Context, c Config, lock *lockfile.Lock) (*Project, hcl.Diagnostics) {
	c.Drawn = (&snapshot.Source{History: c.History}).Take
	p := newProject(c.Options, tasks.NewFacts(c.Config, nil, lock))
	diags := p.evaluate(ctx)
	if diags.HasErrors() {
		return nil, diags
	}
	return p, diags
}

// Recall opens a project as an earlier plan left it, without evaluating its files. Its Spec holds only the tasks for
// which something has changed; the graph's other nodes stand as they were. It is false when the remembered plan does
// not hold, when something has changed that needs the whole Spec, or when the caller needs compares and reports and
// there are some. Then Known of the config tells what of the remembered plan is of use to Open.
func Recall(ctx context.Context, c *Config, lock *lockfile.Lock, findings bool) (*Project, bool) {
	r, known, ok := c.memo().Recall(ctx, c.Config, lock, findings)
	if !ok {
		c.Known = known
		return nil, false
	}
	p := newProject(c.Options, r.Facts)
	p.recalled, p.findings = r, r.Findings
	return p, true
}

func (o *Options) memo() memo.Place { return memo.Place{File: o.MemoFile, Basis: o.Basis} }

// Preflight returns the findings of the preflight, the worst first.
func (p *Project) Preflight() []preflight.Finding { return p.findings }

// Remember keeps what a plan of the whole project found out for the next process. It keeps nothing where that could not
// tell whether it still holds.
func (p *Project) Remember(ctx context.Context, plan *engine.Plan) error {
	if len(p.usedUp.given) > 0 || p.partial {
		return nil
	}
	return p.memo().Remember(ctx, &memo.Planned{
		Drawing: p.Drawing, Plan: plan, Findings: p.findings, Missed: p.missed, Recalled: p.recalled,
		Used: p.Known.Used,
	})
}

// evaluate takes the whole project from its files, and the machine as it is.
func (p *Project) evaluate(ctx context.Context) hcl.Diagnostics {
	p.recalled, p.Standing = nil, nil
	if diags := p.reload(); diags.HasErrors() {
		return diags
	}
	class, _, err := machine.Inventory(nil)
	if err != nil {
		fmt.Fprintf(p.Progress, "inventory: %v\n", err)
	}
	p.Hardware = class.String()
	if p.Found != nil {
		p.Found.Give(p.Facts)
		pin.IndexTrees(p.Facts)
		return nil
	}
	changed, diags := p.resolver().Resolve(ctx)
	if changed && !diags.HasErrors() {
		diags = append(diags, p.reload()...)
	}
	if !diags.HasErrors() {
		if p.findings, err = survey.Run(ctx, p.Facts, p.Basis); err != nil {
			return append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Preflight", Detail: err.Error()})
		}
		diags = append(append(slices.Clip(p.warnings), diags...), p.warnUnconfined()...)
	}
	return diags
}

// resolver pins in the project's lock.
func (p *Project) resolver() *pin.Resolver {
	return &pin.Resolver{Facts: p.Facts, History: p.History, Locked: p.Locked, Upgrade: p.Upgrade, Reload: p.reload}
}

// reload evaluates the files with the lock as it is now.
func (p *Project) reload() hcl.Diagnostics {
	spec, diags := p.Load(p.Lock)
	if diags.HasErrors() {
		return diags
	}
	p.Spec, p.warnings = spec, diags
	return nil
}

// PlanOptions say what of the graph is planned, and how.
type PlanOptions struct {
	Target      func(address string) bool // nil: everything
	Exclude     func(address string) bool
	Replace     func(address string) bool
	RetryFailed bool
	Here        bool // without what waits for another machine
	AsIs        bool // for showing how things stand: failures that an apply would try again count, too
}

// Unlike is the error for variants that the file measures in different ways, as the last plan has them: a
// *stats.RefusedError. Whoever plans to measure has to look at it first; whoever only shows what is stored need not.
func (p *Project) Unlike(o PlanOptions) error {
	if p.recalled != nil {
		return nil // nothing differed when it was remembered
	}
	exclude := p.excluded(o.Exclude)
	return p.Differ(func(g *tasks.Group) bool { // whether it may be measured
		return slices.ContainsFunc(g.Trials, func(t group.Block) bool {
			at := t.At.String()
			return (o.Target == nil || o.Target(at)) && (exclude == nil || !exclude(at))
		})
	})
}

// Plan builds the graph and decides what is to be done. Rounds go on while what is stored asks for another graph: more
// blocks, or blocks without a member that cannot be built.
func (p *Project) Plan(ctx context.Context, o PlanOptions) (*engine.Plan, error) {
	p.Maker.Made.Forget()
	p.missed, p.next.Alone = nil, nil
	defer func() { p.Known.Result = nil }() // from now on, nodes run, here or elsewhere
	for {
		graph, err := p.draw(ctx)
		if err != nil {
			return nil, err
		}
		whole, err := engine.NewPlan(ctx, graph, p.planOptions(o))
		if err != nil {
			return nil, err
		}
		again, err := p.another(ctx, whole, o)
		if err != nil {
			return nil, err
		}
		if !again {
			return p.part(ctx, whole, o)
		}
	}
}

// Judged plans how everything stands by the last look at each group, for an apply that was ended before the next look:
// blocks that were measured since are not judged yet.
func (p *Project) Judged(ctx context.Context) (*engine.Plan, error) {
	o := PlanOptions{AsIs: true}
	if _, err := p.Plan(ctx, o); err != nil {
		return nil, err
	}
	maps.Copy(p.next.Blocks, p.looks)
	graph, err := p.draw(ctx)
	if err != nil {
		return nil, err
	}
	return engine.NewPlan(ctx, graph, p.planOptions(o))
}

// another reports whether what is stored asks for another round than that of a plan.
func (p *Project) another(ctx context.Context, whole *engine.Plan, o PlanOptions) (bool, error) {
	r := round.Round{Stored: p.Stored(whole), Next: &p.next}
	if r.Bring(ctx) {
		return true, nil
	}
	changed, err := r.Adapt(ctx)
	p.missed = append(p.missed, r.Missed...)
	maps.Copy(p.looks, r.Looks)
	if changed || err != nil {
		return true, err
	}
	if len(p.Spec.Fixes) > 0 && !p.Locked {
		news, err := p.learner.Relearn(ctx, r.Stored)
		if !o.AsIs { // who only shows how things stand shows them as the next apply finds them, and learns nothing
			for _, text := range news {
				fmt.Fprintf(p.Progress, "a remembered failure: %s\n", text)
			}
		}
		if len(news) > 0 {
			p.unsaved = true
			p.next.Remeasure()
		}
		if len(news) > 0 || err != nil {
			return true, err
		}
	}
	if p.recalled == nil { // else no work differed when it was remembered
		p.NoteWork(whole)
	}
	if p.next.Alone == nil && o.Target != nil {
		if alone := r.Targeted(o.Target); len(alone) > 0 {
			p.next.Alone = alone
			return true, nil
		}
	}
	return false, nil
}

// part plans what the options select of a whole plan, without what waits.
func (p *Project) part(ctx context.Context, whole *engine.Plan, o PlanOptions) (*engine.Plan, error) {
	failed := map[string]bool{}
	if o.RetryFailed {
		var err error
		if failed, err = failedBlocks(ctx, p.Stored(whole)); err != nil {
			return nil, err
		}
	}
	if all := p.Executors(); len(all) > 0 && !o.AsIs {
		maps.Copy(failed, all[0].Due(whole)) // of all
	}
	waits := map[string]string{}
	if o.Here {
		waits = p.Waits(whole)
		maps.Copy(waits, postponed(p.Drawing, whole))
	}
	p.partial = len(waits) > 0
	p.NoteWaits(whole)
	if o.Target == nil && o.Exclude == nil && len(failed)+len(waits) == 0 {
		return whole, nil
	}
	part, err := whole.Graph.Subset(o.Target, p.excluded(o.Exclude))
	if err == nil && len(waits) > 0 {
		part, err = part.Subset(nil, func(address string) bool { return waits[address] != "" })
	}
	if err != nil {
		return nil, err
	}
	if replace := o.Replace; len(failed) > 0 {
		o.Replace = func(address string) bool { return failed[address] || replace != nil && replace(address) }
	}
	return engine.NewPlan(ctx, part, p.planOptions(o))
}

// failedBlocks are the blocks in which a member failed. They are in the store, for the samples of the others are good;
// so they are replaced when failures are to be tried again.
func failedBlocks(ctx context.Context, s *results.Stored) (map[string]bool, error) {
	failed := map[string]bool{}
	err := s.Records(ctx, func(step *engine.Step, _ cache.Entry, rec *sample.Record) {
		for _, m := range rec.Members {
			if m.Failure != nil || m.Skipped != "" && !m.Same {
				failed[step.Node.Address] = true
			}
		}
	})
	return failed, err
}

// Stored returns what is stored of the last round's graph, as a plan of it says.
func (p *Project) Stored(plan *engine.Plan) *results.Stored {
	return &results.Stored{Drawing: p.Drawing, Plan: plan}
}

// draw makes the graph of the next round.
func (p *Project) draw(ctx context.Context) (*engine.Graph, error) {
	graph, d, err := tasks.Graph(ctx, p.Facts, p.next)
	if err != nil {
		return nil, err
	}
	if p.Drawing = d; d.Spans != nil {
		p.Room.Expect(d.Parts, d.Spans)
	}
	return graph, nil
}

func (p *Project) planOptions(o PlanOptions) engine.PlanOptions {
	own := p.Pool
	if p.Elsewhere != nil {
		own = p.Elsewhere.Pool
	}
	return engine.PlanOptions{
		Store: p.Store, Known: p.Known.Result, Journal: p.Journal, Pool: p.withJobs(own),
		Replace: o.Replace, RetryFailed: o.RetryFailed, AsIs: o.AsIs, GaveUp: p.usedUp.given, Apart: p.Spec.Try != nil,
		Terms: engine.Terms{
			Program: "benchgraph", Replace: "-replace", RetryFailed: "-retry-failed",
			DeviceWait: "apply -device-wait=DURATION", FreeSpace: "benchgraph cache gc",
			LostDevice: tasks.LostDeviceRemedy,
		},
	}
}

// withJobs returns a pool with places for the jobs of all executors.
func (p *Project) withJobs(of device.Pool) device.Pool {
	for _, e := range p.Others() {
		if e.By != nil {
			of = pool.New(of, e.Pool, e.By.Name, e.By.MaxJobs)
		}
	}
	return of
}
