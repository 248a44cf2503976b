package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/forecast"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/tasks"
)

type planFlags struct {
	selection
	access
	out      string
	json     bool
	detailed bool
	verbose  bool
	allow    cli.List
}

func (a *app) planFlags(fs *flag.FlagSet, o *planFlags) {
	o.selection.flags(fs)
	a.jsonFlag(fs, &o.json)
	fs.BoolVar(&o.verbose, "verbose", false, "show every node")
	fs.BoolVar(&o.upgrade, "upgrade", false, "look up branches, tags and HEAD again and change their pins")
	fs.BoolVar(&o.locked, "locked", false, "refuse to change benchgraph.lock.hcl")
	o.here(fs)
	fs.StringVar(&o.machine, "machine", "",
		"plan for another `MACHINE`: a machine block, or the output of benchgraph devices -json there")
	o.sandboxFlag(fs)
	allowFlag(fs, &o.allow)
}

// check returns an error for flags that contradict each other.
func (o *access) check() error {
	if o.upgrade && o.locked {
		return &cli.UsageError{Message: "-upgrade changes what -locked keeps", Remedy: "leave out one of them"}
	}
	return nil
}

// here defines the flags that limit the use of this machine's network and GPUs.
func (o *access) here(fs *flag.FlagSet) {
	fs.BoolVar(&o.offline, "offline", false, "reach no network")
	fs.StringVar(&o.devices, "devices", "", "use only these GPUs: a `LIST` of indices or UUIDs, separated by commas")
}

func (o *access) sandboxFlag(fs *flag.FlagSet) {
	fs.Func("sandbox",
		"for blocks that do not say: `WORD` none, default (a sandbox where this machine makes one) or required",
		func(word string) error {
			if !slices.Contains(hclspec.Sandboxes, word) {
				return fmt.Errorf("write %s", strings.Join(hclspec.Sandboxes, ", "))
			}
			o.sandbox = word
			return nil
		})
}

func allowFlag(fs *flag.FlagSet, allow *cli.List) {
	fs.Func("allow-mismatch", "let `FIELD` of the methodology differ, and label every figure that depends on it",
		func(name string) error {
			known := findings.Fields()
			if sort, _, _ := strings.Cut(name, " "); !slices.Contains(known, sort) {
				return fmt.Errorf("there is no such field%s; known: %s", cli.Suggest(name, known),
					strings.Join(known, ", "))
			}
			return allow.Set(name)
		})
}

func (a *app) plan() cli.Command {
	o := &planFlags{}
	return cli.Command{
		Name: "plan", Summary: "show what apply would do, and why",
		Flags: func(fs *flag.FlagSet) {
			a.planFlags(fs, o)
			fs.StringVar(&o.out, "out", "", "write the plan to `FILE` for apply")
			fs.BoolVar(&o.detailed, "detailed-exitcode", false, "exit with code 2 when there are changes")
		},
		Run: func(ctx context.Context, _ []string) error { return a.runPlan(ctx, o) },
	}
}

func (a *app) runPlan(ctx context.Context, o *planFlags) error {
	if err := o.access.check(); err != nil {
		return err
	}
	var err error
	if o.about, err = o.typed(); err != nil {
		return err
	}
	o.access.allow = o.allow
	if o.everything() {
		o.access.recall = recallAll
	}
	s, err := a.open(ctx, o.access)
	if err != nil {
		return err
	}
	defer s.close()
	p, options, err := s.plan(ctx, &o.selection)
	if err != nil {
		return err
	}
	if err := s.project.Unlike(options); err != nil {
		return err
	}
	s.memorize(ctx, p, &o.selection) // before the check of secrets, which each command makes anew
	s.warn(s.unset(ctx, p))
	if err := s.moved(ctx); err != nil {
		return err
	}
	f := s.forecast(ctx, p)
	if f.Resolutions, err = s.project.Stored(p).Resolutions(ctx); err != nil {
		return err
	}
	if o.json {
		err = view.PlanJSON(a.stdout, p, f, s.project.Preflight(), view.Diagnostics(s.warnings))
	} else if err = view.Preflight(a.stdout, a.style(a.stdout), s.project.Preflight(), wheelBuilds(p),
		o.verbose); err == nil {
		err = view.Plan(a.stdout, a.style(a.stdout), view.PlanOutline(p, f, o.verbose), o.verbose)
	}
	if err != nil {
		return err
	}
	s.planned(ctx, p, &f)
	if o.out != "" {
		if err := writePlanFile(o.out, s, &o.selection, o.allow, p, view.PlanOutline(p, f, false)); err != nil {
			return err
		}
		a.note("The plan is in %s: benchgraph apply %s does exactly that.", o.out, o.out)
	}
	if err := o.selection.infeasible(p); err != nil {
		return err
	}
	if o.detailed && p.Counts()[engine.Run] > 0 {
		return pendingError{}
	}
	return nil
}

// wheelBuilds returns how many wheels a plan builds.
func wheelBuilds(p *engine.Plan) int {
	n := 0
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Action == engine.Run && (s.Node.Kind == "build" || s.Node.Kind == "wheel") &&
			tasks.Builds(s.Node) {
			n++
		}
	}
	return n
}

func (s *session) forecast(ctx context.Context, p *engine.Plan) forecast.Forecast {
	on := forecast.Machine{CPUs: s.cpus}
	for _, e := range s.project.Others() {
		if x := e.By; x != nil {
			on.Executors = append(on.Executors,
				forecast.Share{Name: x.Name, Machine: e.Name, MaxJobs: x.MaxJobs, Devices: e.Devices})
		}
	}
	if m := s.project.Elsewhere; m != nil && m.By == nil {
		on.CPUs, on.Devices = m.Host.Cores, m.Devices
	} else if slices.ContainsFunc(p.Steps, func(st engine.Step) bool {
		return st.Action == engine.Run && st.Node.Resources.GPUs.Count > 0 && st.Node.Resources.Queue == ""
	}) {
		on.Devices = s.gpus.Devices()
	}
	f := forecast.Predict(p, on, s.project.Spec.GPUHour)
	if all := s.project.Others(); len(all) == 1 {
		f.Machine = all[0].Name
	}
	f.Waits = s.project.Waits(ctx, p)
	return f
}

// unset warns of secrets that nodes to run need and the environment lacks: an error hours later would be too late.
func (s *session) unset(ctx context.Context, p *engine.Plan) hcl.Diagnostics {
	toRun := map[string]bool{} // blocks of nodes to run
	waits := s.project.Waits(ctx, p)
	for i := range p.Steps {
		if st := &p.Steps[i]; st.Action == engine.Run && waits[st.Node.Address] == "" {
			block, _, _ := strings.Cut(st.Node.Address, "[")
			toRun[block] = true
			if _, name, ok := strings.Cut(block, "."); ok && tasks.Builds(st.Node) {
				toRun["build."+name] = true // a wheel without overlay is built in its own node
			}
		}
	}
	var diags hcl.Diagnostics
	warned := map[string]bool{}
	check := func(at hclspec.Block, kind string, names []string) {
		for _, name := range names {
			id := at.Address.Kind + "." + at.Address.Name + " " + name
			if _, set := s.env[name]; toRun[kind+"."+at.Address.Name] && !set && !warned[id] {
				warned[id] = true
				diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "Secret not set",
					Subject: &at.Range,
					Detail: fmt.Sprintf("%s.%s needs the secret %s, which is not set in the environment. Export it "+
						"before apply.", at.Address.Kind, at.Address.Name, name)})
			}
		}
	}
	spec := s.project.Spec
	for _, b := range spec.Benchmarks {
		check(b.Block, "trial", b.Secrets)
	}
	for _, t := range spec.Tasks {
		check(t.Block, "task", t.Secrets)
	}
	for _, w := range spec.Wheels {
		if w.Build != nil {
			check(w.Block, "build", w.Build.Secrets)
		}
	}
	return diags
}
