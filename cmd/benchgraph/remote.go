package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/benchgraph/benchgraph/campaign/snapshot"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/remote/declared"
	"github.com/benchgraph/benchgraph/tasks"
)

// setMachines adds the machines to plan for to a config: the one that the command line names, or else those that
// executors reach.
func (s *session) setMachines(ctx context.Context, c *tasks.Config, spec *hclspec.Spec, o access) error {
	profiles, usable, _ := checkMachines(spec)
	for i := range usable {
		x := &usable[i]
		if s.machine != "" && s.machine != x.Machine {
			continue
		}
		e, err := s.elsewhere(x.Machine, profiles, o, true)
		if err != nil {
			return err
		}
		e.By, e.Remote = x, s.newExecutor(ctx, x, spec, o)
		c.Reached = append(c.Reached, e)
	}
	for _, e := range c.Reached {
		if a, b := e.Host, c.Reached[0].Host; a.OS != b.OS || a.Arch != b.Arch {
			return hint("Plan for one of them with -machine.", "machine %s is %s/%s, and %s is %s/%s: one build "+
				"cannot serve both", c.Reached[0].Name, b.OS, b.Arch, e.Name, a.OS, a.Arch)
		}
	}
	if s.machine == "" {
		return nil
	}
	if len(c.Reached) > 0 {
		c.Elsewhere, c.Reached = c.Reached[0], nil
		return nil
	}
	var err error
	c.Elsewhere, err = s.elsewhere(s.machine, profiles, o, false)
	return err
}

// newExecutor returns the executor that runs nodes as jobs; nil if no job can be submitted.
func (s *session) newExecutor(ctx context.Context, x *declared.Executor, spec *hclspec.Spec,
	o access) *remote.Executor {
	if o.job != nil || o.offline { // a worker needs the shared store
		return nil
	}
	self, _ := os.Executable() // Linux always knows it
	x.Program = cmp.Or(x.Program, x.Kind.Program, self)
	x.WorkDir = cmp.Or(x.WorkDir, filepath.Join(s.state, "jobs"))
	shared, err := s.bucketOf(spec.Store)
	if err != nil {
		return nil // opening the shared store reports the error
	}
	keys, _ := s.keysOf(spec.Store) // opening the shared store reports the error
	p := remote.Project{Version: version, Dir: s.dir, File: s.place.file, State: s.state, Store: s.place.store,
		Vars: s.vars, Allow: o.allow, Sandbox: o.sandbox, Machine: x.Machine, Confines: string(executor.SandboxOf()),
		WorkDir: x.WorkDir, Aside: o.aside, VarFiles: remote.ReadGiven(s.varFiles), Shared: *spec.Store,
		Environ: remote.Chosen(s.env, varPrefix, spec.Secrets())}
	return remote.NewExecutor(remote.Options{Executor: *x, Store: s.store, Bucket: shared, Keys: keys,
		Wanted: isCarried, Project: p, Environ: s.environ("LOGNAME", "SHELL", "USER", signingKey),
		Open: func() (job.Scheduler, error) {
			return x.Dial(ctx, self, s.gitEnviron(), func(message string) { s.note("Warning: %s", message) })
		}})
}

// checkJobs returns why the jobs of a plan cannot be submitted. It warns of jobs that no node of the plan needs.
func (s *session) checkJobs(ctx context.Context, p *engine.Plan) error {
	all := s.project.Executors()
	if len(all) == 0 {
		return nil
	}
	if f := snapshot.Check(ctx, s.project.Drawing, p); f != nil {
		return hint(f.Remedy, "%s", f.Message)
	}
	warned := map[job.ID]bool{} // executors may share a cluster and a directory
	for _, x := range all {
		live, err := x.Sweep(ctx, p)
		if err != nil {
			s.note("Warning: what jobs of executor %s have left: %v", x.Name, err)
		}
		for _, id := range live {
			if !warned[id] {
				s.note("Warning: job %s of an earlier apply goes on, and this apply runs no such node. To cancel the "+
					"job: %s%s", view.Clean(id.Name()), x.Kind.Cancel, view.Clean(id.Name()))
			}
			warned[id] = true
		}
	}
	return nil
}

// executors checks whether jobs can be submitted from here.
func (c *checkup) executors(ctx context.Context) {
	self, _ := os.Executable() // Linux always knows it
	for _, x := range c.clusters {
		if _, err := x.Dial(ctx, self, c.gitEnviron(), nil); err != nil {
			c.lacks("executor "+x.Name, true, "", "%v", err)
		} else {
			c.ok("executor "+x.Name, "%s can be asked; machine %s", x.Scheduler, x.Machine)
		}
	}
}
