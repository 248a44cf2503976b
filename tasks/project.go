// Package tasks turns a Spec into a graph the engine can run: one file for each kind of node.
//
// A Project holds a spec and its lock together. Its graph depends on what is already known: how many blocks the verdicts
// so far ask for, which members of a block cannot be built, which fixes were learnt. So planning goes in rounds until
// nothing changes, and applying goes in waves; the graph of a wave is static.
package tasks

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/image"
	"github.com/benchgraph/benchgraph/image/room"
	"github.com/benchgraph/benchgraph/preflight"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/source/download"
	"github.com/benchgraph/benchgraph/source/git"
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
	StateDir   string // absolute; holds mirrors and logs
	StoreDir   string // absolute; of the store: nothing of it is mounted
	Store      Store
	Journal    *cache.Journal
	Stat       *cache.StatCache
	Host       executor.Executor
	Containers executor.Executor // for commands in containers; nil: nothing can run in one
	Engine     *container.Engine // where the images and those containers are; nil: none
	ImageLocks string            // directory by which the applies of one user leave each other's images alone; empty: they do not
	ImageDisk  int64             // bytes of the engine's disk that images of benchgraph's may take; 0: as many as it has
	Pool       device.Pool
	Elsewhere  *Elsewhere     // the machine that is planned for; nil: this one
	GPUs       *device.Driver // by which samples are watched; nil: they are not
	Clocks     *device.Clocks // of its devices; nil: they are not locked
	HTTP       *http.Client   // for downloads
	Sandbox    string         // for blocks that say nothing, before what the file says; empty: that
	Environ    []string       // PATH, HOME and LANG for commands, as NAME=value
	GitEnviron []string       // the whole environment, for git alone: it takes proxies, certificates and ssh from it
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

// Project is a spec with everything that its graph is made from.
type Project struct {
	Config
	Spec *hclspec.Spec
	Lock *hclspec.Lock

	asker      *download.Asker // asks hosts what planning must know
	wheels     wheelLookup     // what is known of the wheels of the file
	warnings   hcl.Diagnostics // of the last reading of the files: warnings
	verifying  sync.Mutex      // held while the files of a mount are read
	mirrorsMu  sync.Mutex
	mirrors    map[string]*git.Mirror // by repo name
	trees      map[string]string      // by commit: its tree
	shells     shell.Config           // by which nodes run commands
	fixes      map[hclspec.Address]*hclspec.Fix
	unlisted   []hclspec.Address             // fixes that no block lists
	unsaved    bool                          // the lock has fixes that were learnt from remembered failures
	recognized map[string]bool               // attempts whose logs were searched for fixes that were declared since
	candidates map[string]*hclspec.Candidate // by key
	rank       map[string]int                // place of each candidate in the file
	groups     []*group
	of         map[hclspec.Address]map[hclspec.Address]bool // by compare: its benchmarks
	excluded   map[string]absence                           // by candidate
	probes     map[string][]hclspec.Address                 // what must hold of a candidate: known issues, its tree where files are protected
	copies     map[string][]string                          // by candidate: patterns of the files that the baseline's copies replace
	hardware   string                                       // class of this machine, as samples record it
	missed     []cache.Key                                  // blocks that were looked for before members were dropped
	as         *machineClass                                // another class, as on whose machine it is planned; nil: this machine's
	models     map[string]*regexp.Regexp
	regained   map[string]int              // by node: how often it was planned again since an input was damaged
	given      map[cache.Key]cache.Attempt // infra failures of this process: not tried again in its later waves
	blocks     map[string]int              // by group: how many blocks are asked for
	alone      map[string]map[string]bool  // by group: the members that are measured by themselves, by name; nil: none is
	dropped    map[string]absence          // by benchmark instance: why it is no member of its group's blocks
	causes     map[string]cause            // by benchmark instance: the failure for which it was dropped
	issues     map[string]absence          // by benchmark instance: the known issue that was found after it was measured
	known      map[string]file             // files of the project that tasks read, as they were when they were first looked at
	misfits    map[string]string           // by task: why what is stored cannot be laid out as it asks for it
	words      map[string]bool             // words of commands: whether the project had a file of that name
	fixFiles   map[string]bool             // names of the project's files that fixes put in place
	patches    map[string]string           // by path: SHA-256 of what was read
	room       *room.Room                  // for images
	maker      *image.Maker                // of images
	unlike     error                       // what Unlike tells
	unresolved map[string]unknownImage     // by name of an image: why nobody knows which one it is
	builds     map[string]image.Context    // of image builds, as they were when they were first looked at
	lacks      func() string               // why there is no container engine, asked once; empty: there is one
	canaries   canaries                    // of blocks that count
	artefacts  map[hclspec.Address]bool    // tasks whose results are measured
	work       map[string]string           // by address of a task or download of one candidate: its key, where that of another variant differs
	machines   []Elsewhere                 // of the file; nil: not read yet
	machineOf  map[string]string           // by address, of the last plan: the machine of the file that can run what this one is too small for
	partial    bool                        // the last plan is without what waits for another machine
	lacking    map[string]func() string    // what this machine lacks for nodes of a plan for another one, by address
	findings   []preflight.Finding         // of the preflight
	refused    refusals                    // what they take out
	recalled   *recalled                   // an earlier plan, of which only what has changed is made anew; nil: everything is
}

func newProject(c Config, spec *hclspec.Spec, lock *hclspec.Lock) *Project {
	p := &Project{
		Config: c, Spec: spec, Lock: lock,
		mirrors:  map[string]*git.Mirror{},
		models:   map[string]*regexp.Regexp{},
		regained: map[string]int{},
		given:    map[cache.Key]cache.Attempt{},
		blocks:   map[string]int{}, recognized: map[string]bool{},
		dropped:  map[string]absence{},
		issues:   map[string]absence{},
		causes:   map[string]cause{},
		known:    map[string]file{},
		misfits:  map[string]string{},
		words:    map[string]bool{},
		fixFiles: map[string]bool{},
		patches:  map[string]string{},
		builds:   map[string]image.Context{},
	}
	p.asker = download.NewAsker(download.AskOptions{
		Client: c.HTTP, Keep: filepath.Join(c.StateDir, "answers"), Offline: c.Offline, Progress: c.Progress,
	})
	p.shells = shell.Config{
		Host: c.Host, Containers: c.Containers, Engine: c.Engine, HTTP: c.HTTP, Environ: c.Environ, Secret: c.Secret,
		Rules: sync.OnceValues(func() (shell.Rules, error) { return shell.NewRules(p.Spec.Failures) }),
	}
	p.lacks = sync.OnceValue(p.askEngine)
	p.room = room.New(c.Engine, c.ImageDisk, filepath.Join(c.StateDir, "images"), c.ImageLocks)
	p.maker = &image.Maker{Shells: p.shells, Room: p.room, Offline: c.Offline}
	return p
}

// Open takes over the lock, evaluates the files, resolves what the lock does not pin and evaluates them again with the pins.
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
	changed, diags := p.resolve(ctx)
	if changed && !diags.HasErrors() {
		diags = append(diags, p.reload()...)
	}
	if !diags.HasErrors() {
		if err := p.runPreflight(ctx); err != nil {
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

// Unlike is the error for variants that the file measures in different ways, as the last plan found them: a *stats.RefusedError.
// Whoever plans to measure has to look at it first; whoever only shows what is stored need not.
func (p *Project) Unlike() error { return p.unlike }

// Plan builds the graph and decides what is to be done. Rounds go on while what is stored asks for another graph: more
// blocks, or blocks without a member that cannot be built.
func (p *Project) Plan(ctx context.Context, o PlanOptions) (*engine.Plan, error) {
	p.maker.Made.Forget()
	p.missed, p.alone = nil, nil
	for {
		graph, err := p.graph(ctx)
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
		if p.alone == nil && o.Target != nil {
			if p.alone = p.targetedAlone(whole, o.Target); p.alone != nil {
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

func (p *Project) planOptions(o PlanOptions) engine.PlanOptions {
	return engine.PlanOptions{
		Store: p.Store, Journal: p.Journal, Pool: p.planningPool(),
		Replace: o.Replace, RetryFailed: o.RetryFailed, AsIs: o.AsIs, GaveUp: p.given,
	}
}
