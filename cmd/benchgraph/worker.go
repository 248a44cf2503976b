package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/tasks"
)

func (a *app) worker() cli.Command {
	return cli.Command{
		Name: "worker", Args: "DIR", Min: 1, Max: 1,
		Summary: "run the node of a job on a machine of a cluster; jobs of an executor call it",
		Long: "DIR is the directory of the job, in which apply has put the request. The result goes into the shared " +
			"store.",
		Run: func(ctx context.Context, args []string) error { return a.runWorker(ctx, args[0]) },
	}
}

func (a *app) runWorker(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(a.below(dir))
	var request *remote.Request
	if err == nil {
		request, err = remote.ReadRequest(dir)
	}
	if err != nil {
		return hint("apply writes that directory, and starts the worker as a job.", "job %s: %w", view.Clean(dir), err)
	}
	failure := a.work(ctx, dir, request)
	if ctx.Err() != nil {
		return context.Cause(ctx) // whoever cancelled the job asks for no outcome
	}
	err = remote.WriteOutcome(dir, remote.Outcome{Job: a.env["SLURM_JOB_ID"], Failure: failure})
	if failure != nil {
		err = errors.Join(fmt.Errorf("%s: %s", request.Address, view.Clean(failure.Text())), err)
	}
	return err
}

// work runs the node of a request, and returns why there is no result; nil if there is one.
func (a *app) work(ctx context.Context, dir string, r *remote.Request) *cache.Failure {
	var failed *engine.Failure
	own, err := os.MkdirTemp("", "benchgraph-job-")
	if err == nil {
		defer func() { _ = fs.RemoveTree(own) }()
		err = a.enter(ctx, own, r)
	}
	if err == nil {
		failed, err = a.workIn(ctx, dir, r)
	}
	if failed != nil {
		return &failed.Failure
	}
	if err == nil {
		return nil
	}
	f := &cache.Failure{Class: cache.Infra, Rule: "worker", Stage: "start", Message: "worker: " + err.Error()}
	if hinted, ok := errors.AsType[*hintError](err); ok {
		f.Remedy = hinted.remedy
	}
	return f
}

// enter makes this process work in a copy of the project below dir, and with a store of this machine.
func (a *app) enter(ctx context.Context, dir string, r *remote.Request) error {
	if r.Version != version {
		return hint("Install the same version on all machines, or name it by program in the executor block.",
			"the job is from benchgraph %s, and this is %s", r.Version, version)
	}
	for _, v := range r.Environ {
		name, value, _ := strings.Cut(v, "=")
		a.env[name] = value
	}
	store, err := remote.StoreDir(a.env["BENCHGRAPH_CACHE_DIR"])
	if err != nil {
		return err
	}
	a.file, a.vars, a.env["BENCHGRAPH_CACHE_DIR"] = r.File, r.Vars, store
	a.chdir, a.env["BENCHGRAPH_STATE_DIR"], a.varFiles, err = r.Bring(ctx, store, dir, func(store *shared.Store) error {
		return (&session{app: a, place: place{state: dir}, store: store}).shareAt(&r.Shared)
	})
	return err
}

// workIn runs the node of a request in the project that was entered.
func (a *app) workIn(ctx context.Context, dir string, r *remote.Request) (*engine.Failure, error) {
	s, err := a.open(ctx, access{allow: r.Allow, sandbox: r.Sandbox, machine: r.Machine, job: r,
		hidden: []string{r.Dir, r.State, r.Store, filepath.Dir(dir)}}) // with requests of other jobs
	if err != nil {
		return nil, err
	}
	defer s.close()
	p, err := s.part(ctx, r)
	if err != nil {
		return nil, err
	}
	var logs []string
	lines := view.NewLines(s.stderr, s.style(s.stderr), false)
	emit := func(e engine.Event) {
		if e.Type == engine.NodeStart && e.Address == r.Address {
			logs = append(logs, e.Log)
		}
		lines.Event(e)
	}
	applied, err := s.project.ApplyPart(ctx, p, tasks.ApplyOptions{RunID: r.Run, Emit: emit})
	lines.Close()
	for _, log := range logs {
		if err := s.copyLog(ctx, r.Address, loggedAttempt{log: log}, false); err != nil {
			s.note("Warning: %v", err)
		}
	}
	if err != nil {
		return nil, err
	}
	if failures := applied.Failures; len(failures) > 0 && failures[0].Address == r.Address {
		return &engine.Failure{Failure: failures[0].Failure}, nil
	} else if len(failures) > 0 {
		return nil, fmt.Errorf("input %s was made anew and failed: %s", failures[0].Address, failures[0].Failure.Text())
	}
	e, err := s.store.Get(ctx, r.Key, true)
	if err != nil {
		return nil, fmt.Errorf("%s was not run: %w", r.Address, err)
	}
	if err := s.store.Send(ctx, e); err != nil { // the store of this machine may have had it, and the shared one not
		return nil, fmt.Errorf("the result could not be put into the shared store: %w", err)
	}
	s.store.Flush(ctx) // tells others of it; apply knows its name
	return nil, nil
}

// part plans the node of the request. The shared store is asked for each result that would be made anew: its index may
// not know of them yet.
func (s *session) part(ctx context.Context, r *remote.Request) (*engine.Plan, error) {
	asked := map[cache.Key]bool{r.Key: true}
	for {
		p, err := s.project.Part(ctx, r.Choice, r.Address)
		if err != nil {
			return nil, err
		}
		st, ok := p.Step(r.Address)
		switch {
		case !ok:
			return nil, hint("Apply again.", "%s is not in the graph any more", r.Address)
		case st.Key != r.Key:
			return nil, hint("Apply again. If the project was not changed, the nodes of the cluster are not alike: "+
				"keep the jobs on one kind of nodes with constraint in the executor block.",
				"%s has another key here than the job was submitted with", r.Address)
		case st.Action == engine.Blocked || st.Action == engine.Skip:
			return nil, fmt.Errorf("%s cannot run here: %s", r.Address, st.Reason)
		}
		found := false
		for i := range p.Steps {
			if st := &p.Steps[i]; st.Action == engine.Run && !asked[st.Key] && isCarried(st.Node.Address) {
				asked[st.Key] = true
				_, err := s.store.Ask(ctx, st.Key)
				if err != nil && !errors.Is(err, cache.ErrMiss) {
					return nil, fmt.Errorf("shared store: %s: %w", st.Node.Address, err)
				}
				found = found || err == nil
			}
		}
		if !found {
			return p, nil
		}
	}
}
