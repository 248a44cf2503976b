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
	"github.com/benchgraph/benchgraph/campaign/snapshot"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	executorjob "github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/remote"
)

func (a *app) worker() cli.Command {
	return cli.Command{
		Name: "worker", Args: "FILE", Min: 1, Max: 1,
		Summary: "run the node of a job on a machine of a cluster; jobs of an executor call it",
		Long: "FILE is the request that apply has handed to the job. The result goes into the shared store, and what " +
			"became of the job, too.",
		Run: func(ctx context.Context, args []string) error { return a.runWorker(ctx, args[0]) },
	}
}

// job is a request as its worker serves it.
type job struct {
	request *remote.Request
	hides   []string // absolute: what commands in a sandbox must not see
	found   *snapshot.Found

	transcript []byte // JSON: what the last attempt ran that failed
}

func (a *app) runWorker(ctx context.Context, file string) error {
	begun := time.Now()
	request, err := remote.ReadRequest(a.below(file))
	if err != nil {
		return hint("apply hands the request to the job, which starts the worker.", "request %s: %w", view.Clean(file), err)
	}
	for _, v := range request.Environ {
		name, value, _ := strings.Cut(v, "=")
		a.env[name] = value
	}
	shared, err := a.bucketOf(&request.Shared)
	if err != nil {
		return err
	}
	j := &job{request: request, hides: []string{request.Dir, request.State, request.Store, filepath.Dir(a.below(file))}}
	if request.WorkDir != "" { // with the requests of other jobs
		j.hides = append(j.hides, request.WorkDir)
	}
	o := remote.Outcome{Job: a.env[executorjob.NameVariable], Failure: a.work(ctx, j)}
	if ctx.Err() != nil {
		return context.Cause(ctx) // whoever cancelled the job asks for no outcome
	}
	if o.Seconds = time.Since(begun).Seconds(); o.Failure != nil {
		o.Transcript = j.transcript
	}
	err = request.Leave(ctx, shared, o)
	if o.Failure != nil {
		err = errors.Join(fmt.Errorf("%s: %s", request.Address, view.Clean(o.Failure.Text())), err)
	}
	return err
}

// work runs the node of a request, and returns why there is no result; nil if there is one.
func (a *app) work(ctx context.Context, j *job) *failure.Failure {
	dir, err := os.MkdirTemp("", "benchgraph-job-")
	if err == nil {
		defer func() { _ = fs.RemoveTree(dir) }()
		err = a.workBelow(ctx, j, dir)
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

// workBelow runs the node of a request in a copy of its project, which like the state lies below a directory. The store
// is that of this machine.
func (a *app) workBelow(ctx context.Context, j *job, dir string) error {
	r := j.request
	if r.Version != version {
		return hint("Install the same version on all machines, or name it by program in the executor block.",
			"the job is from benchgraph %s, and this is %s", r.Version, version)
	}
	p := place{file: r.File, home: r.Dir, state: filepath.Join(dir, "state"), store: a.env["BENCHGRAPH_CACHE_DIR"]}
	if p.store == "" {
		p.store = filepath.Join(os.TempDir(), fmt.Sprintf("benchgraph-store-%d", os.Getuid()))
		if err := os.Mkdir(p.store, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	o := access{allow: r.Allow, sandbox: r.Sandbox, machine: r.Machine, job: j}
	s := &session{app: a, place: p, machine: o.machine}
	defer s.close()
	err := s.openState(ctx, o)
	if err == nil {
		err = s.shareAt(&r.Shared)
	}
	if err == nil {
		err = s.lay(ctx, j, filepath.Join(dir, "snapshot"))
	}
	if err == nil {
		err = s.openAll(ctx, o)
	}
	if err != nil {
		return err
	}
	return s.runJob(ctx, j)
}

// lay brings the snapshot of a request into a directory, and makes it the project of the session.
func (s *session) lay(ctx context.Context, j *job, dir string) error {
	r := j.request
	e, err := s.store.Ask(ctx, r.Snapshot)
	if err == nil {
		e, err = s.store.Get(ctx, r.Snapshot, true) // a file may have been changed on this machine
	}
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	var files *snapshot.Files
	if err == nil {
		files, err = snapshot.Lay(e, dir)
	}
	if err != nil {
		return hint("Apply again.", "snapshot of the project: %w", err)
	}
	s.vars, s.varFiles = r.Vars, nil
	for i, given := range r.VarFiles {
		name := filepath.Join(dir, fmt.Sprint(i)+filepath.Ext(filepath.Base(given.Name)))
		if err := os.WriteFile(name, given.Text, 0o600); err != nil {
			return err
		}
		s.varFiles = append(s.varFiles, name)
	}
	s.dir, s.lock, j.found = files.Dir, files.Lock, files.Found
	return os.Rename(files.History, s.place.history())
}

// runJob runs the node of a request in the project that was opened.
func (s *session) runJob(ctx context.Context, j *job) error {
	r := j.request
	p, err := r.Plan(ctx, s.project, s.store, isCarried)
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
	if len(logs) > 0 { // a result has its transcript with it, and then there is no file
		j.transcript, _ = os.ReadFile(engine.TranscriptOf(logs[len(logs)-1]))
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
