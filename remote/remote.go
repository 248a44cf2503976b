// Package remote runs nodes on the machines of a cluster.
//
// A node is a job of the cluster's scheduler. The job runs "benchgraph worker", which is an apply of that one node: the
// worker reads a snapshot of the project, draws the same graph, takes inputs from the shared store, and puts the result
// there. The scheduler's word about a job says only that the job is no longer running; the shared store says whether there is
// a result.
package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor/slurm"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// Scheduler hands jobs to machines, as *slurm.Cluster does.
type Scheduler interface {
	Submit(ctx context.Context, j slurm.Job) (id slurm.ID, found bool, err error)
	Wait(ctx context.Context, id slurm.ID, told func(slurm.Status)) (slurm.End, error)
	Cancel(ctx context.Context, id slurm.ID) error
}

// Store is the shared store, as *shared.Store is one. Send puts an entry there unless it is there. Ask looks for a key
// without an index, and brings the entry here; the error wraps cache.ErrMiss if there is none.
type Store interface {
	Send(ctx context.Context, e cache.Entry) error
	Ask(ctx context.Context, key cache.Key) (cache.Entry, error)
}

// Options configure an Executor.
type Options struct {
	Settings
	Open    func() (Scheduler, error) // called once, when the first job is to be submitted
	Store   Store
	Wanted  func(address string) bool // whether the shared store takes the result of a node
	Project Project
	// Snapshot puts the project into the shared store, and returns the key of that entry. Called once.
	Snapshot func() (cache.Key, error)
	Environ  []string // of jobs, as NAME=value
}

// Executor runs nodes as jobs.
type Executor struct{ Options }

// NewExecutor returns an Executor.
func NewExecutor(o Options) *Executor {
	o.Open, o.Snapshot = sync.OnceValues(o.Open), sync.OnceValues(o.Snapshot)
	return &Executor{o}
}

// Take has a node run as a job: on this machine, the node holds nothing but a place among the jobs. Choice is that of
// the node's graph.
func (x *Executor) Take(n *engine.Node, choice func() (json.RawMessage, error)) {
	asks := n.Resources
	n.Resources.Queue, n.Resources.Quiet = x.Name, false // the job asks for the quiet of its node
	n.Lacks, n.Checks = nil, nil                         // those are of this machine
	n.Remote = func(ctx context.Context, env *engine.Env) error {
		c, err := choice()
		if err != nil {
			return err
		}
		// Two checkouts of a project have jobs of their own: neither ends those of the other.
		owner := sha256.Sum256([]byte(x.Project.State))
		j := &job{Executor: x, env: env, address: n.Address, quiet: asks.Quiet, gpus: asks.GPUs.Count}
		j.key = env.Key.String() + ":" + hex.EncodeToString(owner[:4])
		j.dir = filepath.Join(x.WorkDir, hex.EncodeToString(owner[:4])+"-"+env.Key.String()[:24])
		j.cpus, j.memory = cmp.Or(x.CPUs, asks.Takes()), x.Memory
		if j.memory == 0 && asks.Memory > 0 {
			j.memory = asks.Memory + asks.Memory/8 + workerMemory
		}
		return j.run(ctx, c)
	}
}

// workerMemory is what the worker itself may need beside the node, in bytes. A command that reaches its own limit should
// fail by that, and not by the limit of the job.
const workerMemory = 1 << 30

// Jobs is the number of nodes of a plan that run as jobs.
func Jobs(p *engine.Plan) (n int) {
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Action == engine.Run && s.Node.Remote != nil {
			n++
		}
	}
	return n
}

// job is one run of a node on the cluster.
type job struct {
	*Executor
	env        *engine.Env
	address    string
	key        string // by which the job is found again
	dir        string // of its files
	cpus, gpus int
	memory     int64
	quiet      bool // no other job may run on the node
}

// run submits the job, follows it to its end, and lays out the result.
func (j *job) run(ctx context.Context, choice json.RawMessage) error {
	if e, err := j.Store.Ask(ctx, j.env.Key); err == nil { // an earlier apply was killed before it took the result
		j.clean()
		return workdir.CopyTree(j.env.Out, e.Dir)
	}
	scheduler, err := j.Open()
	if err == nil {
		err = j.prepare(ctx, choice)
	}
	if err != nil {
		return fmt.Errorf("executor %s: %w", j.Name, err)
	}
	id, found, err := scheduler.Submit(ctx, j.describe())
	if err != nil {
		return j.refused(ctx, err)
	}
	verb := "is submitted"
	if found {
		verb = "was submitted before"
	}
	j.tell("job %s %s", id.Number(), verb)
	running := false
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go j.watch(waiting, id, stop)
	end, err := scheduler.Wait(waiting, id, func(s slurm.Status) {
		if s.State == "RUNNING" && !running {
			running = true
			j.tell("job %s runs on %s", id.Number(), s.Node)
			j.lease(id)
		} else if s.State == "PENDING" && s.Reason != "" {
			j.tell("job %s is queued: %s", id.Number(), s.Reason)
		}
	})
	if err != nil && !errors.Is(context.Cause(waiting), errWorkerEnded) {
		return j.cancel(ctx, scheduler, id, err)
	}
	return j.conclude(ctx, id, end)
}

// errWorkerEnded ends the wait for a job whose worker has left its outcome.
var errWorkerEnded = errors.New("the worker has ended")

// watchEvery is how often the outcome of a worker is looked for. The scheduler is asked less often, and tells later.
const watchEvery = 100 * time.Millisecond

// watch waits for the outcome that a worker leaves.
func (j *job) watch(ctx context.Context, id slurm.ID, stop context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchEvery):
		}
		// The end of a worker that failed is waited for, since its job still counts as one of the key.
		if o, ok := j.outcome(id); ok && o.Failure == nil {
			stop(errWorkerEnded)
			return
		}
	}
}

// outcome returns the outcome of the worker of a job; false if there is none yet.
func (j *job) outcome(id slurm.ID) (o Outcome, ok bool) {
	err := readJSON(filepath.Join(j.dir, outcomeFile), &o)
	return o, err == nil && o.Job == id.Number()
}

// prepare puts the inputs where the worker finds them, and writes the request.
func (j *job) prepare(ctx context.Context, choice json.RawMessage) error {
	for _, in := range j.env.Inputs {
		if !j.Wanted(in.Address) {
			continue
		}
		if err := j.Store.Send(ctx, in.Entry); err != nil {
			return fmt.Errorf("input %s: %w", in.Address, err)
		}
	}
	files, err := j.Snapshot()
	if err != nil {
		return fmt.Errorf("snapshot of the project: %w", err)
	}
	// The request holds secrets.
	err = os.MkdirAll(j.dir, 0o700)
	if err == nil {
		err = cache.CheckOwner(j.dir)
	}
	if err == nil {
		err = os.Chmod(j.dir, 0o700)
	}
	if err != nil {
		return err
	}
	r := Request{j.Project, j.env.Run, j.address, j.env.Key, files, choice}
	return writeJSON(filepath.Join(j.dir, requestFile), r)
}

func (j *job) describe() slurm.Job {
	return slurm.Job{
		Key: j.key, Exclusive: j.quiet, Name: "benchgraph " + printable.Line(j.address),
		Script: "#!/bin/sh\n" + j.Setup + "\nexec " + shell.Quote(j.Program) + " worker " + shell.Quote(j.dir) + "\n",
		Dir:    j.dir, Output: filepath.Join(j.dir, outputFile),
		Partition: j.Partition, Account: j.Account, QOS: j.QOS, Constraint: j.Constraint, Gres: j.Gres,
		GPUs: j.gpus, CPUs: j.cpus, Memory: j.memory, Time: j.Time, Environ: j.Environ,
	}
}

// refused returns the failure of a job that could not be submitted.
func (j *job) refused(ctx context.Context, err error) error {
	if unanswered, ok := errors.AsType[*slurm.Unanswered](err); ok {
		j.tell("%v", unanswered)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	no, ok := errors.AsType[*slurm.Refused](err)
	if !ok {
		return fmt.Errorf("executor %s: %w", j.Name, err)
	}
	j.clean()
	return &engine.Failure{Err: err, Retry: once(), Failure: cache.Failure{
		Class: cache.Infra, Rule: "job_refused", Stage: "submit", Message: "Slurm refuses the job: " + no.Error(),
		Remedy: "correct the executor block " + j.Name + ", or what the node asks for",
	}}
}

// once is the Retry of a failure for which no other job is submitted.
func once() *engine.Retry { return &engine.Retry{Attempts: 1} }

// cancelWithin bounds how long an interrupted apply waits for the end of a job.
const cancelWithin = time.Minute

// cancel ends a job that nobody waits for any more.
func (j *job) cancel(ctx context.Context, scheduler Scheduler, id slurm.ID, why error) error {
	within, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelWithin)
	defer stop()
	if err := scheduler.Cancel(within, id); err != nil {
		j.tell("job %s could not be cancelled: %v. Cancel it: scancel %[1]s", id.Number(), err)
	} else {
		j.clean()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("executor %s: job %s: %w", j.Name, id.Number(), why)
}

// conclude takes the result of a job that is no longer running, or tells why there is none.
func (j *job) conclude(ctx context.Context, id slurm.ID, end slurm.End) error {
	j.copyOutput()
	e, o, err := j.look(ctx, id, end)
	switch {
	case err == nil:
		if err := workdir.CopyTree(j.env.Out, e.Dir); err != nil {
			return err
		}
		j.clean()
		return nil
	case !errors.Is(err, cache.ErrMiss):
		return fmt.Errorf("executor %s: the result of job %s: %w", j.Name, id.Number(), err)
	}
	defer j.clean()
	// At the job's limit of memory, the kernel may end what is not to blame.
	if o.Failure != nil && (end.State != "OUT_OF_MEMORY" || o.Failure.Rule == "oom_killed") {
		return &engine.Failure{Retry: once(), Failure: *o.Failure} // the worker has tried again
	}
	return j.lost(id, end)
}

// latency is how long a network file system may take to show what another machine has written.
const latency = 20 * time.Second

// look looks for the result and the outcome of a job: for a while, if the job ended by itself.
func (j *job) look(ctx context.Context, id slurm.ID, end slurm.End) (e cache.Entry, o Outcome, err error) {
	for begun := time.Now(); ; {
		_, _ = os.ReadDir(j.dir) // has the file system look again
		var told bool
		e, err = j.Store.Ask(ctx, j.env.Key)
		o, told = j.outcome(id)
		itself := end.State == "" || end.State == "COMPLETED" || end.State == "FAILED"
		if err == nil || !errors.Is(err, cache.ErrMiss) || told && o.Failure != nil || !itself ||
			time.Since(begun) > latency {
			return e, o, err
		}
		select {
		case <-ctx.Done():
			return e, o, context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// lost returns the failure of a job that left neither a result nor an outcome.
func (j *job) lost(id slurm.ID, end slurm.End) error {
	f := &engine.Failure{Failure: cache.Failure{Class: cache.Infra, Rule: "job_lost", Stage: "run",
		Remedy: "look at the log, and at the scheduler's record of the job: sacct -j " + id.Number()}}
	where := ""
	if end.Node != "" {
		where = " on " + end.Node
	}
	switch {
	case end.Held != "":
		f.Message = fmt.Sprintf("job %s can never run: %s", id.Number(), end.Held)
		f.Retry = once()
		f.Remedy = "have the reason removed, or change the executor block " + j.Name
	case end.Lost || end.State == "":
		f.Message = fmt.Sprintf("job %s is gone, and left no result", id.Number())
	case end.State == "TIMEOUT":
		f.Rule, f.Retry = "job_timeout", once()
		f.Message = fmt.Sprintf("job %s reached its time limit%s", id.Number(), where)
		f.Remedy = "raise time in the executor block " + j.Name
	case end.State == "OUT_OF_MEMORY":
		f.Rule, f.Retry = "job_memory", once()
		f.Message = fmt.Sprintf("job %s needed more memory than it was given%s", id.Number(), where)
		f.Remedy = "raise memory in the executor block " + j.Name
	default:
		f.Message = fmt.Sprintf("job %s ended as %s%s without a result", id.Number(), end.State, where)
		if end.State == "FAILED" || end.State == "COMPLETED" { // another job would end in the same way
			f.Retry = once()
		}
	}
	f.Evidence = j.lastLine()
	return f
}

// maxOutput bounds what is kept of the output of a job, in bytes.
const maxOutput = 256 << 20

// copyOutput adds the output of the job to the log of the attempt. The output of a job that never ran is not there.
func (j *job) copyOutput() {
	f, _, err := cache.OpenRegular(filepath.Join(j.dir, outputFile))
	if errors.Is(err, iofs.ErrNotExist) {
		return
	}
	if err == nil {
		_, err = io.Copy(j.env.Log, io.LimitReader(f, maxOutput))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Fprintf(j.env.Log, "output of the job: %v\n", err)
	}
}

// lastLine returns the last line of the job's output; "" if there is none.
func (j *job) lastLine() string {
	f, _, err := cache.OpenRegular(filepath.Join(j.dir, outputFile))
	if err != nil {
		return ""
	}
	defer f.Close()
	return shell.LastLine(f)
}

// clean removes the files of the job.
func (j *job) clean() {
	if err := fs.RemoveTree(j.dir); err != nil {
		j.tell("left behind: %v", err)
	}
}

// lease reports the devices of the job, whose UUIDs the node alone knows.
func (j *job) lease(id slurm.ID) {
	devices := make([]string, j.gpus)
	for i := range devices {
		devices[i] = fmt.Sprintf("job %s, device %d", id.Number(), i)
	}
	if j.gpus > 0 {
		j.env.Emit(engine.Event{Type: engine.LeaseGranted, Data: map[string]any{"devices": devices}})
	}
}

// tell reports what becomes of the job.
func (j *job) tell(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(j.env.Log, "%s\n", text)
	j.env.Emit(engine.Event{Type: engine.Note, Reason: text})
}
