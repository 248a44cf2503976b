package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/campaign/snapshot"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/watch"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor/apptainer"
	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/remote/worker"
)

func (a *app) worker() cli.Command {
	return cli.Command{
		Name: "worker", Args: "FILE", Min: 1, Max: 1,
		Summary: "run the node of a job on a machine of a cluster; jobs of an executor call it",
		Long: "FILE is the request that apply has handed to the job. The worker puts the result and the outcome of " +
			"the job into the shared store.",
		Run: func(ctx context.Context, args []string) error { return a.runWorker(ctx, args[0]) },
	}
}

// workerJob is the job that a worker runs.
type workerJob struct {
	request    *remote.Request
	shared     bucket.Bucket // of the shared store
	begun      time.Time
	hides      []string // absolute paths that commands in a sandbox must not see
	found      *snapshot.Found
	result     string // digest of the result; "": there is none
	transcript []byte // JSON: the transcript of the last failed attempt; nil: none failed
}

func (a *app) runWorker(ctx context.Context, file string) error {
	begun := time.Now()
	file = a.below(file)
	request, err := worker.TakeRequest(file, a.env[job.RequestKeyVariable])
	if err != nil {
		return hint("apply hands the request to the job, which starts the worker.", "request %s: %w",
			view.Clean(file), err)
	}
	maps.Copy(a.env, variables(request.Environ))
	a.login = request.Login
	shared, err := a.bucketOf(&request.Shared)
	if err != nil {
		return err
	}
	keys, _ := a.keysOf(&request.Shared) // opening the store reports the error
	j := &workerJob{request: request, shared: shared, begun: begun, hides: worker.Hides(request, file)}
	failure := a.work(ctx, j)
	if ctx.Err() != nil {
		return context.Cause(ctx) // whoever cancelled the job asks for no outcome
	}
	o := remote.Outcome{Job: a.env[job.NameVariable], Failure: failure, Seconds: time.Since(begun).Seconds(),
		Result: j.result, Transcript: j.transcript}
	err = a.patiently(ctx, j, func() error { return request.Leave(ctx, shared, keys, o) })
	if failure != nil {
		err = errors.Join(fmt.Errorf("%s: %s", request.Address, view.Clean(failure.Text())), err)
	}
	return err
}

// leastPatience is the least time that a worker waits for a shared store that is away or full.
const leastPatience = 2 * time.Minute

// patiently repeats try as long as the shared store is away or full. It waits no longer than the worker has run so far:
// in that time, another job would come as far.
func (a *app) patiently(ctx context.Context, j *workerJob, try func() error) error {
	within := max(time.Since(j.begun), leastPatience).Round(time.Second)
	return bucket.Patiently(ctx, within, func(err error) {
		a.note("Warning: the shared store cannot be used now, and is asked again for %s: %v", within, err)
	}, try)
}

// work runs the node of a request, and returns why there is no result; nil if there is one.
func (a *app) work(ctx context.Context, j *workerJob) *failure.Failure {
	dir, err := worker.NewJobDir()
	if err == nil {
		defer func() { _ = dir.Remove() }()
		err = a.workBelow(ctx, j, dir.Path)
	}
	if err == nil {
		return nil
	}
	f := &failure.Failure{Class: failure.Infra, Rule: "worker", Stage: "start", Message: "worker: " + err.Error()}
	failed, ok := errors.AsType[*engine.Failure](err)
	hinted, isHinted := errors.AsType[*cli.HintError](err)
	switch {
	case ok:
		f = &failed.Failure
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		f.Rule = engine.DiskFull
	case isHinted:
		f.Remedy = hinted.Remedy
	}
	if f.Rule == engine.DiskFull {
		worker.NameDisk(f, a.env["BENCHGRAPH_CACHE_DIR"])
	}
	return f
}

// workBelow runs the node of a request. The copy of the project and the state are below dir; the store is that of this
// machine.
func (a *app) workBelow(ctx context.Context, j *workerJob, dir string) error {
	r := j.request
	if r.Version != version {
		return hint("Install the same version on all machines, or name it by program in the executor block.",
			"the job is from benchgraph %s, and this is %s", r.Version, version)
	}
	if err := a.patiently(ctx, j, func() error { return worker.Writable(ctx, r, j.shared) }); err != nil {
		return err
	}
	store, images, err := worker.StoreDirs(a.env["BENCHGRAPH_CACHE_DIR"], dir, r, a.note)
	if err != nil {
		return err
	}
	j.hides = append(j.hides, filepath.Dir(dir), images) // the directories of all jobs, the store of the machine
	o := access{allow: r.Allow, sandbox: r.Sandbox, machine: r.Machine, job: j}
	if r.Aside != nil {
		o.measureAside(r.Aside)
		if t := r.Aside.Try; t != nil {
			o.try = func(context.Context, *session, *hclspec.Spec) (*hclspec.Try, error) { return t, nil }
		}
	}
	s := &session{app: a, machine: o.machine, place: place{file: r.File, home: r.Dir, store: store,
		state: filepath.Join(dir, "state")}}
	defer s.close()
	if err := s.openState(ctx, o); err != nil {
		return err
	}
	s.apptainer = apptainer.Instead(s.env, images, s.host, s.note)
	if err := s.shareAt(&r.Shared, r, s.store.Share); err != nil {
		return err
	}
	err = a.patiently(ctx, j, func() error { return s.lay(ctx, j, filepath.Join(dir, "snapshot")) })
	if err != nil {
		return err
	}
	if err := errors.Join(s.openAll(ctx, o), worker.RemoveGiven(s.varFiles)); err != nil {
		return err
	}
	return s.runJob(ctx, j)
}

// lay brings the snapshot of a request into a directory, and makes it the project of the session.
func (s *session) lay(ctx context.Context, j *workerJob, dir string) error {
	files, err := snapshot.Bring(ctx, s.store, j.request.Snapshot, dir)
	if err != nil {
		return hint("Apply again.", "snapshot of the project: %w", err)
	}
	s.dir, s.lock, j.found, s.vars = files.Dir, files.Lock, files.Found, j.request.Vars
	if a := j.request.Aside; a != nil && a.Try != nil && filepath.IsAbs(a.Try.Patch) {
		a.Try.Patch = files.Patch
	}
	if s.varFiles, err = worker.WriteGiven(&j.request.Project, dir); err != nil {
		return err
	}
	return os.Rename(files.History, s.place.history())
}

// runJob runs the node of a request in the open project.
func (s *session) runJob(ctx context.Context, j *workerJob) error {
	r := j.request
	var p *engine.Plan
	err := s.patiently(ctx, j, func() (err error) {
		p, err = worker.Plan(ctx, r, s.project, s.store, isCarried)
		return err
	})
	if err != nil {
		return err
	}
	var logs []string
	lines := watch.NewLines(s.stderr, s.style(s.stderr), false)
	emit := func(e engine.Event) {
		if e.Type == engine.NodeStart && e.Address == r.Address {
			logs = append(logs, e.Log)
		}
		lines.Event(e)
	}
	applied, err := s.project.ApplyPart(ctx, p, campaign.ApplyOptions{RunID: r.Run, Emit: emit})
	lines.Close()
	for _, log := range logs {
		if err := s.copyLog(ctx, r.Address, runlog.Tried{Log: log}, false); err != nil {
			s.note("Warning: %v", err)
		}
	}
	if len(logs) > 0 { // a result has its transcript with it, and leaves no file
		j.transcript, _ = os.ReadFile(engine.TranscriptOf(logs[len(logs)-1]))
	}
	if err != nil {
		return err
	}
	err = s.patiently(ctx, j, func() (err error) {
		j.result, err = worker.Conclude(ctx, r, p, applied, s.store)
		return err
	})
	if err == nil {
		s.store.Flush(ctx) // adds the result to the index for others; apply knows its name
	}
	return err
}
