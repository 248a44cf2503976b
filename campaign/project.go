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
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/campaign/memo"
	"github.com/benchgraph/benchgraph/campaign/snapshot"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/source/history"
	"github.com/benchgraph/benchgraph/tasks"
)

// Loader evaluates the project's files with a lock.
type Loader func(*hclspec.Lock) (*hclspec.Spec, hcl.Diagnostics)

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

	warnings   hcl.Diagnostics             // of the last evaluation of the files
	unsaved    bool                        // the lock has fixes that were learnt from remembered failures
	recognized map[string]bool             // attempts whose logs were searched for fixes that were declared later
	missed     []cache.Key                 // keys of blocks that were looked up before members were dropped
	remade     map[string]int              // by node: how often it ran again because an input was damaged
	given      map[cache.Key]cache.Attempt // infra failures of this process, which later waves do not try again
	unlike     error                       // the error of Unlike
	partial    bool                        // the last plan leaves out nodes that wait for another machine
}

// newProject returns a project whose files are not evaluated yet.
func newProject(o Options, f *tasks.Facts) *Project {
	return &Project{
		Options: o, Drawing: &tasks.Drawing{Facts: f}, next: tasks.NewChoice(),
		remade: map[string]int{}, given: map[cache.Key]cache.Attempt{}, recognized: map[string]bool{},
	}
}

// Open takes over the lock, evaluates the files, resolves what the lock does not pin and evaluates them again with the
// pins.
func Open(ctx context.Context, c Config, lock *hclspec.Lock) (*Project, hcl.Diagnostics) {
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
// there are some.
func Recall(ctx context.Context, c Config, lock *hclspec.Lock, findings bool) (*Project, bool) {
	r, ok := c.memo().Recall(ctx, c.Config, lock, findings)
	if !ok {
		return nil, false
	}
	p := newProject(c.Options, r.Facts)
	p.recalled, p.findings = r, r.Findings
	return p, true
}

func (o *Options) memo() memo.Place { return memo.Place{File: o.MemoFile, Basis: o.Basis} }

// Remember keeps what a plan of the whole project found out for the next process. It keeps nothing where that could not
// tell whether it still holds.
func (p *Project) Remember(ctx context.Context, plan *engine.Plan) error {
	if len(p.given) > 0 || p.partial {
		return nil
	}
	return p.memo().Remember(ctx, &memo.Planned{
		Drawing: p.Drawing, Plan: plan, Findings: p.findings, Missed: p.missed, Recalled: p.recalled,
	})
}

// evaluate takes the whole project from its files, and the machine as it is.
func (p *Project) evaluate(ctx context.Context) hcl.Diagnostics {
	p.recalled, p.Standing = nil, nil
	spec, diags := p.Load(p.Lock)
	if diags.HasErrors() {
		return diags
	}
	p.Spec, p.warnings = spec, diags
	class, _, err := device.Inventory(nil)
	if err != nil {
		fmt.Fprintf(p.Progress, "inventory: %v\n", err)
	}
	p.Hardware = class.String()
	if p.Elsewhere != nil {
		p.Hardware = p.Elsewhere.Host.Class().String()
	}
	if p.Found != nil {
		p.Found.Give(p.Facts)
		p.resolver().indexTrees()
		return nil
	}
	changed, diags := p.resolver().resolve(ctx)
	if changed && !diags.HasErrors() {
		diags = append(diags, p.reload()...)
	}
	if !diags.HasErrors() {
		if err := (&survey{p}).run(ctx); err != nil {
			return append(diags, problem(hcl.Range{}, "Preflight", err.Error()))
		}
		diags = append(append(slices.Clip(p.warnings), diags...), p.warnUnconfined()...)
	}
	return diags
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

// measures says whether a plan with these options may measure a group.
func (o *PlanOptions) measures(g *tasks.Group) bool {
	return slices.ContainsFunc(g.Trials, func(t findings.Block) bool {
		at := t.At.String()
		return (o.Target == nil || o.Target(at)) && (o.Exclude == nil || !o.Exclude(at))
	})
}

// Unlike is the error for variants that the file measures in different ways, as the last plan found them: a
// *stats.RefusedError. Whoever plans to measure has to look at it first; whoever only shows what is stored need not.
func (p *Project) Unlike() error { return p.unlike }

// Plan builds the graph and decides what is to be done. Rounds go on while what is stored asks for another graph: more
// blocks, or blocks without a member that cannot be built.
func (p *Project) Plan(ctx context.Context, o PlanOptions) (*engine.Plan, error) {
	p.Maker.Made.Forget()
	p.missed, p.next.Alone = nil, nil
	for {
		graph, err := p.draw(ctx)
		if err != nil {
			return nil, err
		}
		whole, err := engine.NewPlan(ctx, graph, p.planOptions(o))
		if err != nil {
			return nil, err
		}
		if p.bring(ctx, whole) {
			continue
		}
		changed, err := p.adapt(ctx, whole)
		if err != nil {
			return nil, err
		}
		if !changed && !o.AsIs {
			changed, err = p.relearn(ctx, whole)
		}
		if err != nil {
			return nil, err
		}
		if changed {
			continue
		}
		if p.recalled == nil { // else nothing differed when it was remembered
			p.NoteWork(whole)
			p.unlike = p.Differ(o.measures)
		}
		if p.next.Alone == nil && o.Target != nil {
			if p.next.Alone = p.targetedAlone(whole, o.Target); p.next.Alone != nil {
				continue
			}
		}
		failed, err := p.failedBlocks(ctx, whole, o)
		if err != nil {
			return nil, err
		}
		waits := map[string]string{}
		if o.Here {
			waits = p.Waits(whole)
			maps.Copy(waits, p.postponed(whole))
		}
		p.partial = len(waits) > 0
		p.NoteWaits(whole)
		if o.Target == nil && o.Exclude == nil && len(failed)+len(waits) == 0 {
			return whole, nil
		}
		part, err := graph.Subset(o.Target, o.Exclude)
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
	return engine.PlanOptions{
		Store: p.Store, Journal: p.Journal, Pool: p.planningPool(),
		Replace: o.Replace, RetryFailed: o.RetryFailed, AsIs: o.AsIs, GaveUp: p.given, Terms: terms(),
	}
}

// terms returns the words of this program in the engine's messages.
func terms() engine.Terms {
	return engine.Terms{
		Program: "benchgraph", Replace: "-replace", RetryFailed: "-retry-failed",
		DeviceWait: "apply -device-wait=DURATION", FreeSpace: "benchgraph cache gc", LostDevice: tasks.LostDeviceRemedy,
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// short is a commit as it is shown.
func short(rev string) string { return rev[:min(len(rev), 12)] }

// bringer is a store that brings results of a shared store here, many at a time.
type bringer interface {
	Bring(ctx context.Context, keys []cache.Key) (lost bool)
}

// bring brings here the results that a plan reads: of benchmarks, of the blocks of a benchmark that is to be gathered
// anew, and of reports. It reports whether the shared store did not have what it said, so that it must be planned
// again.
func (p *Project) bring(ctx context.Context, plan *engine.Plan) bool {
	store, ok := p.Store.(bringer)
	if !ok {
		return false
	}
	var keys []cache.Key
	add := func(address string) (stored bool) {
		step, ok := plan.Step(address)
		if !ok {
			return false
		}
		m, stored := step.Stored()
		if stored {
			keys = append(keys, m.Key)
		}
		return stored
	}
	for _, g := range p.Groups {
		whole := true
		for _, m := range g.Members {
			whole = add(m.Bench.Address.String()) && whole
		}
		if !whole || g.Members[0].Bench.Canary != nil {
			for _, t := range g.Trials {
				add(t.At.String())
			}
		}
	}
	for i := range p.Spec.Reports {
		add(p.Spec.Reports[i].Address.String())
	}
	return store.Bring(ctx, keys) && ctx.Err() == nil
}

// LacksSandbox returns why this machine makes no sandbox, if any block asks for one by one of the words.
func (p *Project) LacksSandbox(words ...string) error {
	for own, image := range p.Spec.Sandboxed() {
		if image == (hclspec.Address{}) && slices.Contains(words, p.SandboxWord(own)) {
			return executor.CheckSandbox()
		}
	}
	return nil
}

// warnUnconfined says that what is to run in a sandbox where there can be one will run without.
func (p *Project) warnUnconfined() hcl.Diagnostics {
	err := p.LacksSandbox("default")
	if err == nil {
		return nil
	}
	d := &hcl.Diagnostic{Severity: hcl.DiagWarning, Detail: "They should run in " + err.Error()}
	if executor.SandboxOf() == executor.Landlock {
		d.Summary = "Commands run behind Landlock alone"
		d.Detail += ". Without namespaces, Landlock guards their files, TCP ports and processes, and nothing else."
	} else {
		d.Summary = "Commands run without a sandbox"
		d.Detail += ". Where they may do all that you may, say sandbox = \"none\"."
	}
	return hcl.Diagnostics{d}
}
