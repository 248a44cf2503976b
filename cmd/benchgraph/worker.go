package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/remote"
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
	begun := time.Now()
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
	err = remote.WriteOutcome(dir, remote.Outcome{Job: a.env["SLURM_JOB_ID"], Seconds: time.Since(begun).Seconds(),
		Failure: failure})
	if failure != nil {
		err = errors.Join(fmt.Errorf("%s: %s", request.Address, view.Clean(failure.Text())), err)
	}
	return err
}

// work runs the node of a request, and returns why there is no result; nil if there is one.
func (a *app) work(ctx context.Context, dir string, r *remote.Request) *failure.Failure {
	err := a.enter(dir, r)
	if err == nil {
		err = a.workIn(ctx, r)
	}
	if err == nil {
		return nil
	}
	if failed, ok := errors.AsType[*engine.Failure](err); ok {
		return &failed.Failure
	}
	f := &failure.Failure{Class: failure.Infra, Rule: "worker", Stage: "start", Message: "worker: " + err.Error()}
	if hinted, ok := errors.AsType[*hintError](err); ok {
		f.Remedy = hinted.remedy
	}
	return f
}

// enter makes this process work in the project of the request, with a state of its own in the directory of the job and
// a store of this machine.
func (a *app) enter(dir string, r *remote.Request) error {
	if r.Version != version {
		return hint("Install the same version on all machines, or name it by program in the executor block.",
			"the job is from benchgraph %s, and this is %s", r.Version, version)
	}
	if err := remote.Link(r.State, dir); err != nil {
		return err
	}
	a.chdir, a.file = r.Dir, r.File
	a.vars, a.varFiles = r.Vars, r.VarFiles
	for _, v := range r.Environ {
		name, value, _ := strings.Cut(v, "=")
		a.env[name] = value
	}
	a.env["BENCHGRAPH_STATE_DIR"] = dir
	if a.env["BENCHGRAPH_CACHE_DIR"] == "" {
		own := filepath.Join(os.TempDir(), fmt.Sprintf("benchgraph-store-%d", os.Getuid()))
		if err := os.Mkdir(own, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		a.env["BENCHGRAPH_CACHE_DIR"] = own
	}
	return nil
}

// workIn runs the node of a request in the project that was entered.
func (a *app) workIn(ctx context.Context, r *remote.Request) error {
	s, err := a.open(ctx, access{allow: r.Allow, sandbox: r.Sandbox, machine: r.Machine, job: r})
	if err != nil {
		return err
	}
	defer s.close()
	p, err := r.Plan(ctx, s.project, s.store, isShared)
	if err != nil {
		return err
	}
	var logs []string
	lines := view.NewLines(s.stderr, s.style(s.stderr), false)
	emit := func(e engine.Event) {
		if e.Type == engine.NodeStart && e.Address == r.Address {
			logs = append(logs, e.Log)
		}
		lines.Event(e)
	}
	applied, err := s.project.ApplyPart(ctx, p, campaign.ApplyOptions{RunID: r.Run, Emit: emit})
	lines.Close()
	for _, log := range logs {
		if err := s.copyLog(ctx, r.Address, loggedAttempt{log: log}, false); err != nil {
			s.note("Warning: %v", err)
		}
	}
	if err != nil {
		return err
	}
	if failures := applied.Failures; len(failures) > 0 && failures[0].Address == r.Address {
		return &engine.Failure{Failure: failures[0].Failure}
	} else if len(failures) > 0 {
		return fmt.Errorf("input %s was made anew and failed: %s", failures[0].Address, failures[0].Failure.Text())
	}
	e, err := s.store.Get(ctx, r.Key, true)
	if err != nil {
		return fmt.Errorf("%s was not run: %w", r.Address, err)
	}
	if err := s.store.Send(ctx, e); err != nil { // the store of this machine may have had it, and the shared one not
		return fmt.Errorf("the result could not be put into the shared store: %w", err)
	}
	s.store.Flush(ctx) // tells others of it; apply knows its name
	return nil
}
