// Package tasks turns a Spec into a graph the engine can run: one file for each kind of node.
//
// A Project holds a spec and its lock together. Its graph depends on what is already known: how many blocks the
// verdicts so far ask for, which members of a block cannot be built, which fixes were learnt. So planning goes in
// rounds until nothing changes, and applying goes in waves; the graph of a wave is static.
package tasks

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/source/history"
	"github.com/benchgraph/benchgraph/tasks/memo"
)

// Store is what a project needs of the store.
type Store interface {
	cache.Store
	memo.Store
	List(ctx context.Context, wanted func(address string) bool, f func(cache.Meta) error) error
	Scratch() (string, error)
	Outline(m *cache.Meta) cache.Outline
}

// Config is what a project works with. All of it comes from main; nothing else is read from the environment.
type Config struct {
	StateDir   string   // absolute; holds mirrors and logs
	StoreDir   string   // absolute; of the store: nothing of it is mounted
	Hidden     []string // absolute: what else commands in a sandbox must not see
	Store      Store
	Journal    *cache.Journal
	Stat       *cache.StatCache
	Host       executor.Executor
	Containers executor.Executor // for commands in containers; nil: nothing can run in one
	Engine     *container.Engine // where the images and those containers are; nil: none
	// directory by which the applies of one user leave each other's images alone; empty: they do not
	ImageLocks string
	// bytes of the engine's disk that images of benchgraph's may take; 0: as many as it has
	ImageDisk  int64
	Pool       device.Pool
	Elsewhere  *Elsewhere       // the machine that is planned for; nil: this one
	Remote     *remote.Executor // runs nodes on machines like that one; nil: they wait
	GPUs       *device.Driver   // by which samples are watched; nil: they are not
	Clocks     *device.Clocks   // of its devices; nil: they are not locked
	HTTP       *http.Client     // for downloads
	Sandbox    string           // for blocks that say nothing, before what the file says; empty: that
	Environ    []string         // PATH, HOME and LANG for commands, as NAME=value
	GitEnviron []string         // the whole environment, for git alone: it takes proxies, certificates and ssh from it
	Secret     func(name string) (value string, ok bool)
	Load       Loader
	History    *history.Cache // what Load asks of the histories of repos; nil: nothing
	Render     Renderer
	Offline    bool      // reach no network
	Locked     bool      // refuse to change the lock
	Upgrade    bool      // names of revisions stand for what they stand for now, whatever a mirror knows of them
	Allow      []string  // methodology fields that may differ; every figure that this lets through is labelled
	Progress   io.Writer // tells of slow preparations, in plain lines
	LockFile   string    // absolute path
	MemoFile   string    // where what a plan found out is kept for the next process; empty: nowhere
	Basis      string    // what, beside files, a plan depends on: this program, its flags, variables
}

// Loader evaluates the project's files with a lock.
type Loader func(*hclspec.Lock) (*hclspec.Spec, hcl.Diagnostics)

// Renderer renders what a report node found, as files by name.
type Renderer func(found []findings.Findings, spec *hclspec.Spec, r *hclspec.Report) (map[string][]byte, error)

// A Project is the spec of a file with its lock, and the state of the rounds and waves that plan and apply the spec.
// The embedded drawing is the graph of the last round.
type Project struct {
	*drawing
	next choice // what the next round's graph is made from

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
func newProject(c Config, spec *hclspec.Spec, lock *hclspec.Lock) *Project {
	f := newFacts(newServices(c), spec, lock)
	return &Project{
		drawing: &drawing{facts: f}, next: newChoice(),
		remade: map[string]int{}, given: map[cache.Key]cache.Attempt{}, recognized: map[string]bool{},
	}
}

// Open takes over the lock, evaluates the files, resolves what the lock does not pin and evaluates them again with the
// pins.
func Open(ctx context.Context, c Config, lock *hclspec.Lock) (*Project, hcl.Diagnostics) {
	p := newProject(c, nil, lock)
	diags := p.evaluate(ctx)
	if diags.HasErrors() {
		return nil, diags
	}
	return p, diags
}

// evaluate takes the whole project from its files, and the machine as it is.
func (p *Project) evaluate(ctx context.Context) hcl.Diagnostics {
	p.recalled = nil
	spec, diags := p.Load(p.Lock)
	if diags.HasErrors() {
		return diags
	}
	p.Spec, p.warnings = spec, diags
	class, _, err := device.Inventory(nil)
	if err != nil {
		fmt.Fprintf(p.Progress, "inventory: %v\n", err)
	}
	p.hardware = class.String()
	if p.Elsewhere != nil {
		p.hardware = p.Elsewhere.Host.Class().String()
	}
	changed, diags := p.resolver().resolve(ctx)
	if changed && !diags.HasErrors() {
		diags = append(diags, p.reload()...)
	}
	if !diags.HasErrors() {
		if err := (&survey{p.facts}).run(ctx); err != nil {
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
func (o *PlanOptions) measures(g *group) bool {
	return slices.ContainsFunc(g.trials, func(t findings.Block) bool {
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
	p.maker.Made.Forget()
	p.missed, p.next.alone = nil, nil
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
			p.noteWork(whole)
			p.unlike = p.differ(o.measures)
		}
		if p.next.alone == nil && o.Target != nil {
			if p.next.alone = p.targetedAlone(whole, o.Target); p.next.alone != nil {
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
		p.noteWaits(whole)
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
	d, graph, err := Graph(ctx, p.facts, p.next)
	if err != nil {
		return nil, err
	}
	p.drawing = d
	return graph, nil
}

func (p *Project) planOptions(o PlanOptions) engine.PlanOptions {
	return engine.PlanOptions{
		Store: p.Store, Journal: p.Journal, Pool: p.planningPool(),
		Replace: o.Replace, RetryFailed: o.RetryFailed, AsIs: o.AsIs, GaveUp: p.given, Terms: terms(),
	}
}

// LostDeviceRemedy is the remedy for failures with the rule [engine.DeviceLost].
const LostDeviceRemedy = "have the device reset or replaced (nvidia-smi and the kernel's log say more), and apply again"

// terms returns the words of this program in the engine's messages.
func terms() engine.Terms {
	return engine.Terms{
		Program: "benchgraph", Replace: "-replace", RetryFailed: "-retry-failed",
		DeviceWait: "apply -device-wait=DURATION", FreeSpace: "benchgraph cache gc", LostDevice: LostDeviceRemedy,
	}
}
