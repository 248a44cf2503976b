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
)

// chooseExecutor returns the executor for the machine that is planned for; nil if there is none. Where the command line
// names no machine, the only executor of the file counts.
func (s *session) chooseExecutor(usable []declared.Executor) *declared.Executor {
	for i := range usable {
		if x := &usable[i]; s.machine == x.Machine || s.machine == "" && len(usable) == 1 {
			s.machine = x.Machine
			return x
		}
	}
	if s.machine == "" && len(usable) > 1 {
		s.note("Warning: the file has %d executors: -machine names the machine of one. This plan uses none.",
			len(usable))
	}
	return nil
}

// newExecutor returns what runs nodes as jobs.
func (s *session) newExecutor(x *declared.Executor, spec *hclspec.Spec, o access) *remote.Executor {
	if x == nil || o.job != nil || o.offline { // a worker needs the shared store
		return nil
	}
	if o.try != nil || o.derive != nil {
		s.note("Warning: a worker knows what the file says, and nothing else: executor %s gets no jobs of this "+
			"command, and what is measured waits for a command on machine %s.", view.Clean(x.Name), view.Clean(x.Machine))
		return nil
	}
	self, _ := os.Executable() // Linux always knows it
	x.Program = cmp.Or(x.Program, x.Kind.Program, self)
	x.WorkDir = cmp.Or(x.WorkDir, filepath.Join(s.state, "jobs"))
	shared, err := s.bucketOf(spec.Store)
	if err != nil {
		return nil // which the shared store tells
	}
	keys, _ := s.keysOf(spec.Store) // likewise
	p := remote.Project{Version: version, Dir: s.dir, File: s.place.file, State: s.state, Store: s.place.store,
		Vars: s.vars, Allow: o.allow, Sandbox: o.sandbox, Machine: x.Machine, Confines: string(executor.SandboxOf()),
		WorkDir: x.WorkDir, VarFiles: remote.ReadGiven(s.varFiles), Shared: *spec.Store,
		Environ: remote.Chosen(s.env, varPrefix, spec.Secrets())}
	return remote.NewExecutor(remote.Options{Executor: *x, Store: s.store, Bucket: shared, Keys: keys,
		Wanted: isCarried, Project: p, Environ: s.environ("LOGNAME", "SHELL", "USER", signingKey),
		Open: func() (job.Scheduler, error) {
			return x.Dial(self, s.gitEnviron(), func(message string) { s.note("Warning: %s", view.Clean(message)) })
		}})
}

// checkJobs returns why the jobs of a plan cannot be submitted.
func (s *session) checkJobs(ctx context.Context, p *engine.Plan) error {
	if s.project.Remote == nil {
		return nil
	}
	if f := snapshot.Check(ctx, s.project.Drawing, p); f != nil {
		return hint(f.Remedy, "%s", f.Message)
	}
	if err := s.project.Remote.Sweep(ctx, p); err != nil {
		s.note("Warning: what jobs have left: %v", err)
	}
	return nil
}

// executors looks whether jobs can be submitted from here.
func (c *checkup) executors() {
	self, _ := os.Executable() // Linux always knows it
	for _, x := range c.clusters {
		if _, err := x.Dial(self, c.gitEnviron(), nil); err != nil {
			c.lacks("executor "+x.Name, true, "", "%v", err)
		} else {
			c.ok("executor "+x.Name, "%s can be asked; machine %s", x.Scheduler, x.Machine)
		}
	}
}
