package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// refused returns the failure of a job that could not be submitted.
func (j *attempt) refused(ctx context.Context, err error) error {
	if unanswered, ok := errors.AsType[*job.Unanswered](err); ok {
		j.tell("%v", unanswered)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	no, ok := errors.AsType[*job.Refused](err)
	if !ok {
		return fmt.Errorf("executor %s: %w", j.Name, err)
	}
	j.clean()
	retry := once()
	if j.withoutLimit(no.Words) {
		retry = nil
	}
	return &engine.Failure{Err: err, Retry: retry, Failure: failure.Failure{
		Class: failure.Infra, Rule: "job_refused", Stage: "submit",
		Message: j.Scheduler + " refuses the job: " + no.Error(),
		Remedy:  "correct the executor block " + j.Name + ", or what the node asks for",
	}}
}

// once is the Retry of a failure for which no other job is submitted.
func once() *engine.Retry { return &engine.Retry{Attempts: 1} }

// cancelWithin bounds how long an interrupted apply waits for the end of a job.
const cancelWithin = time.Minute

// cancel ends a job that nobody waits for any more.
func (j *attempt) cancel(ctx context.Context, scheduler Scheduler, id job.ID, why error) error {
	j.count(id, Outcome{}, job.End{})
	if _, ok := errors.AsType[*Detached](context.Cause(ctx)); ok {
		return context.Cause(ctx)
	}
	within, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelWithin)
	defer stop()
	if err := scheduler.Cancel(within, id); err != nil {
		j.tell("job %s could not be cancelled: %v. Cancel it: %s", id.Name(), err, j.Kind.cancel+id.Name())
	} else {
		j.clean()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("executor %s: job %s: %w", j.Name, id.Name(), why)
}

// conclude takes the result of a job that is no longer running, or tells why there is none.
func (j *attempt) conclude(ctx context.Context, id job.ID, end job.End) error {
	j.copyOutput()
	e, o, err := j.look(ctx, id, end)
	j.count(id, o, end)
	switch {
	case err == nil:
		if err := workdir.CopyTree(j.env.Out, e.Dir); err != nil {
			return err
		}
		j.clean()
		return nil
	case !errors.Is(err, cache.ErrMiss):
		return fmt.Errorf("executor %s: the result of job %s: %w", j.Name, id.Name(), err)
	}
	j.takeTranscript()
	defer j.clean()
	// At the job's limit of memory, the kernel may end what is not to blame.
	if o.Failure != nil && (end.State != "OUT_OF_MEMORY" || o.Failure.Rule == "oom_killed") {
		return &engine.Failure{Retry: once(), Failure: *o.Failure} // the worker has tried again
	}
	return j.lost(id, end)
}

// failedAlone returns the failure of a job that ended while no apply followed it; nil if there is none, or if the next
// job may succeed.
func (j *attempt) failedAlone() error {
	var o Outcome
	if err := readJSON(filepath.Join(j.dir, outcomeFile), &o); err != nil || o.Failure == nil ||
		o.Failure.Class.Retried() {
		return nil
	}
	j.copyOutput()
	j.count(job.ID(o.Job), o, job.End{})
	j.takeTranscript()
	j.clean()
	return &engine.Failure{Retry: once(), Failure: *o.Failure}
}

// maxUnseen is how many jobs of a node in a row may end while no apply follows them, and leave nothing that stands.
const maxUnseen = 3

// unseen returns how many jobs of the node ended while no apply followed them. The error says that there were too many:
// another job would end in the same way, and nobody would learn of it.
func (j *attempt) unseen(ctx context.Context, scheduler Scheduler) (n int, err error) {
	if readJSON(filepath.Join(j.dir, jobsFile), &n) != nil {
		return 0, nil
	}
	if _, found, err := scheduler.Find(ctx, j.key); err != nil || found {
		return n, err
	}
	j.limits.reached = true // perhaps
	if n < maxUnseen {
		return n, nil
	}
	f := &engine.Failure{Retry: once(), Failure: failure.Failure{
		Class: failure.Infra, Rule: "job_lost", Stage: "run", Evidence: j.lastLine(),
		Message: fmt.Sprintf("%d jobs in a row ended without a result, while no apply followed them", n),
		Remedy:  "follow a job with benchgraph apply, which tells how the job ends",
	}}
	var o Outcome
	if readJSON(filepath.Join(j.dir, outcomeFile), &o) == nil && o.Failure != nil {
		f.Failure = *o.Failure
	}
	j.copyOutput()
	j.clean()
	return n, f
}

// count notes how long the job ran: its worker knows, or else the queue showed when the job began. A short job may end
// before the queue shows that.
func (j *attempt) count(id job.ID, o Outcome, end job.End) {
	seen := !j.since.IsZero()
	if !seen && end.Node != "" {
		j.since = end.Started
	}
	switch {
	case o.Seconds > 0:
		j.ran = time.Duration(o.Seconds * float64(time.Second))
	case !j.since.IsZero():
		j.ran = max(0, time.Since(j.since))
	}
	if !seen && j.ran > 0 {
		j.lease(id)
	}
}

// latency is how long a network file system may take to show what another machine has written.
const latency = 20 * time.Second

// look looks for the result and the outcome of a job: for a while, if the job ended by itself.
func (j *attempt) look(ctx context.Context, id job.ID, end job.End) (e cache.Entry, o Outcome, err error) {
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
func (j *attempt) lost(id job.ID, end job.End) error {
	f := &engine.Failure{Failure: failure.Failure{Class: failure.Infra, Rule: "job_lost", Stage: "run",
		Remedy: "look at the log, and at the scheduler's record of the job: " + j.record + id.Name()}}
	where := ""
	if end.Node != "" {
		where = " on " + end.Node
	}
	switch {
	case end.Held != "":
		f.Message = fmt.Sprintf("job %s can never run: %s", id.Name(), end.Held)
		if !j.withoutLimit(end.Held) {
			f.Retry = once()
		}
		f.Remedy = "have the reason removed, or change the executor block " + j.Name
	case end.Lost || end.State == "":
		f.Message = fmt.Sprintf("job %s is gone, and left no result", id.Name())
	case end.State == "TIMEOUT":
		j.timedOut(f, id, where)
	case end.State == "OUT_OF_MEMORY":
		f.Rule, f.Retry = "job_memory", once()
		f.Message = fmt.Sprintf("job %s needed more memory than it was given%s", id.Name(), where)
		f.Remedy = "raise memory in the executor block " + j.Name
	default:
		f.Message = fmt.Sprintf("job %s ended as %s%s without a result", id.Name(), end.State, where)
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
func (j *attempt) copyOutput() {
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

// takeTranscript takes over what the worker of a job that failed has run.
func (j *attempt) takeTranscript() {
	found, _ := filepath.Glob(filepath.Join(j.dir, "logs", "*-"+j.env.Key.Short()+"-*.transcript"))
	if len(found) == 0 {
		return
	}
	var text json.RawMessage
	if readJSON(found[len(found)-1], &text) == nil {
		j.env.Transcript = text
	}
}

// lastLine returns the last line of the job's output; "" if there is none.
func (j *attempt) lastLine() string {
	f, _, err := cache.OpenRegular(filepath.Join(j.dir, outputFile))
	if err != nil {
		return ""
	}
	defer f.Close()
	return shell.LastLine(f)
}

// clean removes the files of the job.
func (j *attempt) clean() {
	if err := fs.RemoveTree(j.dir); err != nil {
		j.tell("left behind: %v", err)
	}
}
