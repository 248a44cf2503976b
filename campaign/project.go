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

// Loader evaluates the project's files with the pins of a lock.
type Loader func(*lockfile.Lock) (*hclspec.Spec, hcl.Diagnostics)

// Config configures a project. All of it comes from main; a project reads nothing else from the environment.
type Config struct {
	tasks.Config
	Options
}

// Options say how a project is read, pinned and remembered.
type Options struct {
	Load     Loader
	History  *history.Cache // answers the questions of Load about histories of repos; nil: Load asks none
	Locked   bool           // refuse to change the lock
	Upgrade  bool           // look names of revisions up again, even if the mirror has them
	MemoFile string         // keeps the memo of a plan for the next process; empty: there is no memo
	Basis    string         // all that a plan depends on, beside files: this program, its flags, variables
	Known    memo.Known     // results of a memo that does not hold as a whole, for the first plan
	// facts that the machine of the project found; nil: this is that machine
	Found *snapshot.Found
}

// A Project is the spec of a file with its lock, and the state of the rounds and waves that plan and apply the spec.
// The embedded drawing is the graph of the last round.
type Project struct {
	Options
	*tasks.Drawing
	next     tasks.Choice        // the choice for the next round's graph
	findings []preflight.Finding // of preflight
	recalled *memo.Recalled      // the memo that this plan rests on; only its changed nodes are planned; nil: none

	warnings hcl.Diagnostics // of the last evaluation of the files
	learner  round.Learner
	unsaved  bool           // the lock has fixes that were learnt from remembered failures
	missed   []cache.Key    // keys under which blocks were looked up before members were dropped
	looks    map[string]int // number of blocks at the last look, by group
	usedUp   usedUp         // over all waves of this process
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

// Open evaluates the files with the lock, resolves the names that the lock does not pin, and evaluates the files again
// with the new pins.
func Open(ctx context.Context, c Config, lock *lockfile.Lock) (*Project, hcl.Diagnostics) {
	c.Drawn = (&snapshot.Source{History: c.History}).Take
	p := newProject(c.Options, tasks.NewFacts(c.Config, nil, lock))
	diags := p.evaluate(ctx)
	if diags.HasErrors() {
		return nil, diags
	}
	return p, diags
}

// Recall opens a project from the memo of an earlier plan, without evaluating its files. The project's Spec has only
// the tasks that must be planned again; all other nodes stand as in the memo. Recall returns nil if the memo does not
// hold, if a change needs the whole Spec, or if the caller needs findings and the plan has compares or reports. Then
// known has the results of the memo for Open.
func Recall(ctx context.Context, c Config, lock *lockfile.Lock, findings bool) (p *Project, known memo.Known) {
	r, known, ok := c.memo().Recall(ctx, c.Config, lock, findings)
	if ok {
		p = newProject(c.Options, r.Facts)
		p.recalled, p.findings = r, r.Findings
	}
	return p, known
}

func (o *Options) memo() memo.Place { return memo.Place{File: o.MemoFile, Basis: o.Basis} }

// Preflight returns the findings of the preflight, the worst first.
func (p *Project) Preflight() []preflight.Finding { return p.findings }

// Remember writes the memo of a plan of the whole project for the next process. It writes nothing if the next process
// could not check whether the memo still holds.
func (p *Project) Remember(ctx context.Context, plan *engine.Plan) error {
	if len(p.usedUp.given) > 0 || p.partial {
		return nil
	}
	return p.memo().Remember(ctx, &memo.Planned{
		Drawing: p.Drawing, Plan: plan, Findings: p.findings, Missed: p.missed, Recalled: p.recalled,
		Used: p.Known.Used,
	})
}

// evaluate evaluates the project's files and inspects the machine. The memo does not count from then on.
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

// resolver returns a resolver that pins names in the project's lock.
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

// PlanOptions say which part of the graph is planned, and how.
type PlanOptions struct {
	Target      func(address string) bool // nil: everything
	Exclude     func(address string) bool
	Replace     func(address string) bool
	RetryFailed bool
	Here        bool // leave out nodes that wait for another machine
	AsIs        bool // to show how things stand: a failure that an apply would try again counts as failed
}

// Unlike returns a *stats.RefusedError if the last plan has variants that the file measures in different ways. A caller
// that plans to measure must check it first; a caller that only shows stored results need not.
func (p *Project) Unlike(o PlanOptions) error {
	if p.recalled != nil {
		return nil // no memo is kept of variants that differ
	}
	exclude := p.excluded(o.Exclude)
	return p.Differ(func(g *tasks.Group) bool { // reports whether the options let g be measured
		return slices.ContainsFunc(g.Trials, func(t group.Block) bool {
			at := t.At.String()
			return (o.Target == nil || o.Target(at)) && (exclude == nil || !exclude(at))
		})
	})
}

// Plan builds the graph and decides which nodes run. It repeats this in rounds as long as stored results ask for
// another graph: with more blocks, or with blocks without a member that cannot be built.
func (p *Project) Plan(ctx context.Context, o PlanOptions) (*engine.Plan, error) {
	p.Maker.Made.Forget()
	p.missed, p.next.Alone = nil, nil
	defer func() { p.Known.Result = nil }() // nodes may run after this plan, so the memo's results are out of date
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

// Judged plans how everything stands by the last look at each group. It is for an apply that ended before the next
// look: blocks that were measured since the last one are not judged yet.
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

// another reports whether stored results ask for another round after the one that made the plan whole.
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
		if !o.AsIs { // a command that shows how things stand uses the fix as the next apply will, without news
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
	if p.recalled == nil { // a memo is kept only of a plan in which no work differed
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

// part plans the nodes of a whole plan that the options select, without nodes that wait.
func (p *Project) part(ctx context.Context, whole *engine.Plan, o PlanOptions) (*engine.Plan, error) {
	var failed, due map[string]bool
	if o.RetryFailed {
		var err error
		if failed, err = failedBlocks(ctx, p.Stored(whole)); err != nil {
			return nil, err
		}
	}
	if all := p.Executors(); len(all) > 0 && !o.AsIs {
		due = all[0].Due(whole) // any executor returns the nodes of all
	}
	waits := map[string]string{}
	if o.Here {
		waits = p.Waits(ctx, whole)
		maps.Copy(waits, postponed(p.Drawing, whole))
	}
	p.partial = len(waits) > 0
	p.NoteWaits(whole)
	if o.Target == nil && o.Exclude == nil && len(failed)+len(due)+len(waits) == 0 {
		return whole, nil
	}
	part, err := whole.Graph.Subset(o.Target, p.excluded(o.Exclude))
	if err == nil && len(waits) > 0 {
		part, err = part.Subset(nil, func(address string) bool { return waits[address] != "" })
	}
	if err != nil {
		return nil, err
	}
	options := p.planOptions(o)
	options.Incomplete = func(address string) bool { return failed[address] }
	if len(due) > 0 {
		options.Replace = func(address string) bool { return due[address] || o.Replace != nil && o.Replace(address) }
	}
	return engine.NewPlan(ctx, part, options)
}

// failedBlocks returns the addresses of blocks in which a member failed, or printed no number that can be read. Such
// blocks are stored, since the samples of the other members are good.
func failedBlocks(ctx context.Context, s *results.Stored) (map[string]bool, error) {
	failed, unread := map[string]bool{}, map[string][]tasks.Member{} // by block: members whose reading failed
	for _, g := range s.Groups {
		for _, m := range g.Members {
			step, ok := s.Plan.Step(m.Bench.Address.String())
			if !ok || !slices.ContainsFunc(s.Journal.Attempts(step.Node.Address), func(a journal.Attempt) bool {
				return a.Key == step.Key && a.Failure != nil && sample.ByReading(a.Failure.Rule)
			}) {
				continue // no output has to be read
			}
			for _, t := range g.Trials {
				unread[t.At.String()] = append(unread[t.At.String()], m)
			}
		}
	}
	err := s.Records(ctx, func(step *engine.Step, e cache.Entry, rec *sample.Record) {
		for _, m := range unread[step.Node.Address] {
			if rec.Lost(e, m.Bench, m.Name) != nil {
				failed[step.Node.Address] = true
			}
		}
		for _, m := range rec.Members {
			if m.Failure != nil || m.Skipped != "" && !m.Same {
				failed[step.Node.Address] = true
			}
		}
	})
	return failed, err
}

// Stored returns the stored results of the last round's graph; plan is a plan of that graph.
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
	machinePool := p.Pool
	if p.Elsewhere != nil {
		machinePool = p.Elsewhere.Pool
	}
	return engine.PlanOptions{
		Store: p.Store, Known: p.Known.Result, Journal: p.Journal, Pool: p.withJobs(machinePool),
		Replace: o.Replace, RetryFailed: o.RetryFailed, AsIs: o.AsIs, GaveUp: p.usedUp.given, Apart: p.Spec.Try != nil,
		Terms: engine.Terms{
			Program: "benchgraph", Replace: "-replace", RetryFailed: "-retry-failed",
			DeviceWait: "apply -device-wait=DURATION", FreeSpace: "benchgraph cache gc -unreachable",
			LostDevice: tasks.LostDeviceRemedy,
		},
	}
}

// withJobs returns a pool with slots for the jobs of all executors, beside what base has.
func (p *Project) withJobs(base device.Pool) device.Pool {
	for _, e := range p.Others() {
		if e.By != nil {
			base = pool.New(base, e.Pool, e.By.Name, e.By.MaxJobs)
		}
	}
	return base
}
