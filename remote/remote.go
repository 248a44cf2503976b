// Package remote runs nodes on the machines of a cluster.
//
// A node is a job of the cluster's scheduler. The job runs "benchgraph worker", which is an apply of that one node: the
// worker reads the same files, draws the same graph, takes inputs from the shared store, and puts the result there.
// The scheduler's word about a job says only that the job is no longer running; the shared store says whether there is
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
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// Scheduler hands jobs to machines, as *slurm.Cluster does.
type Scheduler interface {
	Queue
	Wait(ctx context.Context, id job.ID, told func(job.Status)) (job.End, error)
	Cancel(ctx context.Context, id job.ID) error
}

// Queue takes jobs, and knows which jobs it has.
type Queue interface {
	Submit(ctx context.Context, j job.Job) (id job.ID, found bool, err error)
	Find(ctx context.Context, key string) (id job.ID, found bool, err error)
}

// Store is the shared store, as *shared.Store is one. Puts reports whether results are put there. Send puts an entry
// there unless it is there. Ask looks for a key without an index, and brings the entry here; the error wraps
// cache.ErrMiss if there is none.
type Store interface {
	Puts() bool
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
	Spec    *hclspec.Spec
	Environ []string // of jobs, as NAME=value
}

// Executor runs nodes as jobs.
type Executor struct {
	Options
	unlimited atomic.Bool // jobs ask for no derived time limits
}

// NewExecutor returns an Executor.
func NewExecutor(o Options) *Executor {
	o.Open = sync.OnceValues(o.Open)
	return &Executor{Options: o}
}

// Take has a node run as a job: on this machine, the node holds nothing but a place among the jobs. Choice is that of
// the node's graph.
func (x *Executor) Take(n *engine.Node, choice func() (json.RawMessage, error)) {
	asks := n.Resources
	limits := &limits{declared: declaredTime(x.Spec, n.Address)}
	n.Resources.Queue, n.Resources.Quiet = x.Name, false // the job asks for the quiet of its node
	n.Lacks, n.Checks = nil, nil                         // those are of this machine
	n.Remote = func(ctx context.Context, env *engine.Env) (time.Duration, error) {
		c, err := choice()
		if err != nil {
			return 0, err
		}
		j := &attempt{Executor: x, env: env, address: n.Address, quiet: asks.Quiet, gpus: asks.GPUs.Count,
			limits: limits}
		j.key, j.dir = jobKey(env.Key, x.owner()), x.dirOf(env.Key)
		j.cpus, j.memory = cmp.Or(x.CPUs, asks.Takes()), x.Memory
		if j.memory == 0 && asks.Memory > 0 {
			j.memory = asks.Memory + asks.Memory/8 + workerMemory
		}
		err = j.run(ctx, c)
		return j.ran, err
	}
}

// ownerOf names a project by the directory of its state. Two checkouts of a project have jobs of their own: neither
// ends those of the other.
func ownerOf(state string) string {
	sum := sha256.Sum256([]byte(state))
	return hex.EncodeToString(sum[:4])
}

func (x *Executor) owner() string { return ownerOf(x.Project.State) }

// jobKey is the key by which the scheduler knows the job of a node.
func jobKey(key cache.Key, owner string) string { return key.String() + ":" + owner }

// dirOf is the directory of the job that makes the result of a key.
func (x *Executor) dirOf(key cache.Key) string {
	return filepath.Join(x.WorkDir, x.owner()+"-"+key.String()[:24])
}

// workerMemory is what the worker itself may need beside the node, in bytes. A command that reaches its own limit should
// fail by that, and not by the limit of the job.
const workerMemory = 1 << 30

// attempt is one attempt to run a node as a job.
type attempt struct {
	*Executor
	env        *engine.Env
	address    string
	key        string // by which the job is found again
	dir        string // of its files
	cpus, gpus int
	memory     int64
	quiet      bool // no other job may run on the node
	limits     *limits

	since time.Time     // when it was first seen to run; zero: it was not
	ran   time.Duration // how long it ran
}

// run submits the job, follows it to its end, and lays out the result.
func (j *attempt) run(ctx context.Context, choice json.RawMessage) error {
	if e, err := j.Store.Ask(ctx, j.env.Key); err == nil { // an earlier apply was killed before it took the result
		j.clean()
		j.ran = e.Duration
		return workdir.CopyTree(j.env.Out, e.Dir)
	}
	if f := j.failedAlone(); f != nil {
		return f
	}
	scheduler, err := j.Open()
	var unseen int
	if err == nil {
		unseen, err = j.unseen(ctx, scheduler)
	}
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
	if !found {
		if err := writeJSON(filepath.Join(j.dir, jobsFile), unseen+1); err != nil {
			j.tell("jobs of the node are not counted: %v", err)
		}
	}
	verb := "is submitted"
	if limit, derived := j.limit(); derived {
		verb += ", with a time limit of " + inMinutes(limit)
	}
	if found {
		verb = "was submitted before"
	}
	j.tell("job %s %s", id.Name(), verb)
	j.env.Emit(engine.Event{Type: engine.Note, Reason: engine.Waiting + "job " + id.Name() + " to start",
		Data: map[string]any{submitted: true}})
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go j.watch(waiting, id, stop)
	end, err := scheduler.Wait(waiting, id, func(s job.Status) {
		if s.State == "RUNNING" && j.since.IsZero() {
			j.since = time.Now()
			j.tell("job %s runs on %s", id.Name(), s.Node)
			j.lease(id)
		} else if s.State == "PENDING" && s.Reason != "" {
			j.tell(engine.Waiting+"job %s is queued: %s", id.Name(), s.Reason)
		}
	})
	if err != nil && !errors.Is(context.Cause(waiting), errWorkerEnded) {
		return j.cancel(ctx, scheduler, id, err)
	}
	return j.conclude(ctx, id, end)
}

// submitted names the datum of the Note by which a job is known to be in the queue.
const submitted = "submitted"

// errWorkerEnded ends the wait for a job whose worker has left its outcome.
var errWorkerEnded = errors.New("the worker has ended")

// watchEvery is how often the outcome of a worker is looked for. The scheduler is asked less often, and tells later.
const watchEvery = 100 * time.Millisecond

// watch waits for the outcome that a worker leaves.
func (j *attempt) watch(ctx context.Context, id job.ID, stop context.CancelCauseFunc) {
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
func (j *attempt) outcome(id job.ID) (o Outcome, ok bool) {
	err := readJSON(filepath.Join(j.dir, outcomeFile), &o)
	return o, err == nil && o.Job == id.Name()
}

// prepare puts the inputs where the worker finds them, and writes the request.
func (j *attempt) prepare(ctx context.Context, choice json.RawMessage) error {
	for _, in := range j.env.Inputs {
		if !j.Wanted(in.Address) {
			continue
		}
		if err := j.Store.Send(ctx, in.Entry); err != nil {
			return fmt.Errorf("input %s: %w", in.Address, err)
		}
	}
	// The request holds secrets.
	err := os.MkdirAll(j.dir, 0o700)
	if err == nil {
		err = cache.CheckOwner(j.dir)
	}
	if err == nil {
		err = os.Chmod(j.dir, 0o700)
	}
	if err != nil {
		return err
	}
	r := Request{j.Project, host(), j.env.Run, j.address, j.env.Key, choice}
	return writeJSON(filepath.Join(j.dir, requestFile), r)
}

func (j *attempt) describe() job.Job {
	limit, _ := j.limit()
	return job.Job{
		Key: j.key, Exclusive: j.quiet, Name: "benchgraph " + printable.Line(j.address),
		Script: "#!/bin/sh\n" + j.Setup + "\nexec " + shell.Quote(j.Program) + " worker " + shell.Quote(j.dir) + "\n",
		Dir:    j.Project.Dir, Output: filepath.Join(j.dir, outputFile),
		GPUs: j.gpus, CPUs: j.cpus, Memory: j.memory, Time: limit, Environ: j.Environ,
	}
}

// lease reports that the job runs, and its devices, whose UUIDs the node alone knows.
func (j *attempt) lease(id job.ID) {
	devices := make([]string, j.gpus)
	for i := range devices {
		devices[i] = fmt.Sprintf("job %s, device %d", id.Name(), i)
	}
	j.env.Emit(engine.Event{Type: engine.LeaseGranted, Data: map[string]any{"devices": devices}})
}

// tell reports what becomes of the job.
func (j *attempt) tell(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(j.env.Log, "%s\n", text)
	j.env.Emit(engine.Event{Type: engine.Note, Reason: text})
}
