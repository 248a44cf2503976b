package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/remote/detach"
	"github.com/benchgraph/benchgraph/remote/objects"
	"github.com/benchgraph/benchgraph/remote/printed"
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
	j.clean(ctx)
	retry := once()
	if j.withoutLimit(no.Words) {
		retry = nil
	}
	j.full.Range(func(node, _ any) bool { // the reason may be that no other node is left
		j.full.Delete(node)
		retry = nil
		return true
	})
	return &engine.Failure{Err: err, Retry: retry, Failure: failure.Failure{
		Class: failure.Infra, Rule: "job_refused", Stage: "submit",
		Message: no.Error(),
		Remedy:  "correct the executor block " + j.Name + ", or what the node asks for",
	}}
}

// once is the Retry of a failure for which no other job is submitted.
func once() *engine.Retry { return &engine.Retry{Attempts: 1} }

// cancelWithin bounds how long an interrupted apply waits for the end of a job.
const cancelWithin = time.Minute

// cancel cancels a job that nobody waits for any more, unless the apply detaches.
func (j *attempt) cancel(ctx context.Context, scheduler job.Scheduler, id job.ID, why error) error {
	j.count(id, Outcome{}, job.End{})
	if _, ok := errors.AsType[*detach.Detached](context.Cause(ctx)); ok {
		return context.Cause(ctx)
	}
	within, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelWithin)
	defer stop()
	j.tell("job %s is being cancelled; a second interrupt would leave that to you: %s", id.Name(),
		j.Kind.Cancel+known(id))
	if err := scheduler.Cancel(within, id); err != nil {
		j.tell("job %s could not be cancelled: %v. Cancel it: %s", id.Name(), err, j.Kind.Cancel+known(id))
	} else {
		j.clean(within)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("executor %s: job %s: %w", j.Name, id.Name(), why)
}

// known returns the name of a job for the scheduler's own commands. Kubernetes has one name for all jobs of a key; ours
// adds a dot and a suffix to tell them apart.
func known(id job.ID) string {
	name, _, _ := strings.Cut(id.Name(), ".")
	return name
}

// conclude takes the result of a job that no longer runs, or returns why there is none.
func (j *attempt) conclude(ctx context.Context, id job.ID, end job.End) error {
	if j.streamed != nil {
		j.streamed(latency)
	} else {
		j.copyOutput(ctx, id)
	}
	o, err := j.look(ctx, id, end)
	j.count(id, o, end)
	switch {
	case err == nil:
		j.clean(ctx)
		return nil
	case !errors.Is(err, cache.ErrMiss):
		return unusable(fmt.Errorf("executor %s: the result of job %s: %w", j.Name, id.Name(), err))
	}
	defer j.clean(ctx)
	// At the job's limit of memory, the kernel may kill a process that is not to blame.
	if o.Failure != nil && (end.State != "OUT_OF_MEMORY" || o.Failure.Rule == "oom_killed") {
		j.takeTranscript(o.Transcript)
		if o.Failure.Rule == engine.DiskFull && end.Node != "" { // other nodes may have room
			j.full.Store(end.Node, true)
			return &engine.Failure{Failure: *o.Failure}
		}
		return &engine.Failure{Retry: once(), Failure: *o.Failure} // the worker has made its own tries
	}
	return j.lost(id, end)
}

// failedAlone returns the failure of a job that ended while no apply followed it; nil if there is no such failure, or
// if the next job may succeed.
func (j *attempt) failedAlone(ctx context.Context) error {
	o, ok := j.outcome(ctx)
	if !ok || o.Failure == nil || o.Failure.Class.Retried() {
		return nil
	}
	id := job.NewID(o.Job, j.key)
	j.copyOutput(ctx, id)
	j.count(id, o, job.End{})
	j.takeTranscript(o.Transcript)
	j.clean(ctx)
	return &engine.Failure{Retry: once(), Failure: *o.Failure}
}

// maxUnseen bounds the jobs of a node in a row that end without a result while no apply follows them.
const maxUnseen = 3

// unseen returns how many jobs of the node ended while no apply followed them. It returns an error if there were too
// many: another job would probably end in the same way, and nobody would see it.
func (j *attempt) unseen(ctx context.Context, scheduler job.Scheduler) (n int, err error) {
	earlier, ok := j.submissions()
	if n = earlier.Jobs; !ok {
		return 0, nil
	}
	if _, found, err := scheduler.Find(ctx, j.key); err != nil || found {
		return n, err
	}
	j.limits.reached = true // perhaps by the last job
	if n < maxUnseen {
		return n, nil
	}
	o, left := j.outcome(ctx)
	j.copyOutput(ctx, job.NewID(o.Job, j.key))
	f := &engine.Failure{Retry: once(), Failure: failure.Failure{
		Class: failure.Infra, Rule: "job_lost", Stage: "run", Evidence: j.printed.LastLine(),
		Message: fmt.Sprintf("%d jobs in a row ended without a result, while no apply followed them", n),
		Remedy:  "follow a job with benchgraph apply, which tells how the job ends",
	}}
	if left && o.Failure != nil {
		f.Failure = *o.Failure
	}
	j.clean(ctx)
	return n, f
}

// submissions counts the jobs of a node that were submitted since an apply last saw one end.
type submissions struct {
	Jobs int    `json:"jobs"`
	Last string `json:"last"` // name of the last job; "": not known
}

// submissions returns the submissions of the node; false if there are none.
func (j *attempt) submissions() (s submissions, ok bool) {
	var text json.RawMessage
	if readJSON(j.counted, &text) != nil {
		return s, false
	}
	if json.Unmarshal(text, &s.Jobs) == nil { // an old file: without names
		return s, true
	}
	return s, json.Unmarshal(text, &s) == nil
}

// noteUnseen writes the submissions of the node to its file.
func (j *attempt) noteUnseen(s submissions) error {
	if err := os.MkdirAll(filepath.Dir(j.counted), 0o700); err != nil {
		return err
	}
	return writeJSON(j.counted, s)
}

// count notes how long the job ran, from its worker's outcome, or else from the time when the queue showed its start. A
// short job may end before the queue shows that.
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

// patiently repeats try until the shared store answers and has room: meanwhile, the job only holds its slot.
func (j *attempt) patiently(ctx context.Context, try func() error) error {
	return bucket.Patiently(ctx, 0, func(err error) {
		j.tell("the shared store cannot be used now; benchgraph asks again and again (%v)", err)
	}, try)
}

// latency bounds how late a shared store shows an object that another machine has written.
const latency = 20 * time.Second

// look takes the result and reads the outcome of a job. If the job ended by itself, it waits for them for a while.
func (j *attempt) look(ctx context.Context, id job.ID, end job.End) (o Outcome, err error) {
	for begun := time.Now(); ; {
		var outcomeErr error
		err = j.patiently(ctx, func() error { return j.take(ctx) })
		o, outcomeErr = j.outcomeFrom(ctx, id.Name())
		j.unsigned = errors.Is(outcomeErr, errUnsigned)
		itself := end.State == "" || end.State == "COMPLETED" || end.State == "FAILED"
		if err == nil || !errors.Is(err, cache.ErrMiss) || outcomeErr == nil && o.Failure != nil || !itself ||
			time.Since(begun) > latency {
			return o, err
		}
		select {
		case <-ctx.Done():
			return o, context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// lost returns the failure of a job that left neither a result nor an outcome.
func (j *attempt) lost(id job.ID, end job.End) error {
	f := &engine.Failure{Failure: failure.Failure{Class: failure.Infra, Rule: "job_lost", Stage: "run",
		Remedy: "look at the log, and at the scheduler's record of the job: " + j.Kind.Record + known(id)}}
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
		if end.Reason != "" && end.State != job.Failed {
			f.Message += ": " + end.Reason
		}
		switch {
		case j.unsigned:
			f.Rule = "outcome_unsigned"
			f.Message += "; " + unbelieved
			f.Remedy = "see the log; name a key of trust on the nodes (BENCHGRAPH_SIGNING_KEY), and see who " +
				"else writes to the store"
		case end.State == job.Failed && len(j.printed.End) == 0:
			// Slurm also reports this for a job whose script never ran, if a killed controller had forgotten the job.
		case end.State == job.Failed || end.State == job.Completed: // another job would end in the same way
			f.Retry = once()
		}
	}
	f.Evidence = j.printed.LastLine()
	if strings.Contains(f.Evidence, outcomeLost) {
		f.Rule = "store_unusable"
		f.Message = fmt.Sprintf("job %s could not write to the shared store%s", id.Name(), where)
		f.Remedy = "give nodes credentials for the store and a way to it: by job_role in the store, by setup in the " +
			"executor block " + j.Name + ", or by files on the nodes, such as ~/.aws"
		for _, known := range []error{bucket.ErrFull, bucket.ErrClock, bucket.ErrNoBucket, bucket.ErrTooLarge} {
			if strings.Contains(f.Evidence, known.Error()) {
				f.Remedy = bucket.Known(known)
			}
		}
	}
	if status, ok := strings.CutPrefix(f.Evidence, setupEnded); ok {
		f.Rule, f.Evidence = "setup", j.printed.Before(setupEnded)
		f.Message = fmt.Sprintf("job %s: a line of setup ended with exit status %s%s", id.Name(), status, where)
		f.Remedy = "correct setup in the executor block " + j.Name + "; a line that may fail ends with || true"
	}
	return f
}

// stream copies the output of a job to the log of the attempt in the background, until the job ends.
func (j *attempt) stream(ctx context.Context, id job.ID) {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		j.copyOutput(ctx, id)
	}()
	j.streamed = func(within time.Duration) {
		defer stop()
		select {
		case <-done:
		case <-time.After(within):
			stop()
			<-done
		}
	}
}

// copyOutput adds the output of a job to the log of the attempt. A job that never ran has none.
func (j *attempt) copyOutput(ctx context.Context, id job.ID) {
	scheduler, err := j.Open()
	logger, ok := scheduler.(job.Logger)
	if err != nil || !ok || id == "" {
		return
	}
	j.printed = printed.Output{To: j.env.Log, Left: printed.Most}
	if err := logger.Log(ctx, id, &j.printed); err != nil && ctx.Err() == nil {
		fmt.Fprintf(j.env.Log, "output of the job: %v\n", err)
	}
}

// takeTranscript takes over the transcript of a job's worker.
func (j *attempt) takeTranscript(text json.RawMessage) {
	if text != nil {
		j.env.Transcript = text
	}
}

// clean removes everything that the job has left. It keeps a result that was made again until this machine's store has
// that result, which the next apply sees.
func (j *attempt) clean(ctx context.Context) {
	left := []string{objects.Name(j.key, objects.Outcome)}
	var err error
	if objects.Round(j.key) != "" && !j.done {
		left = append(left, objects.Name(j.key, objects.Result))
		err = j.marks.End(j.env.Key)
	}
	err = errors.Join(err, j.Bucket.Remove(ctx, left))
	if scheduler, failed := j.Open(); failed == nil {
		if keeper, ok := scheduler.(job.Keeper); ok {
			err = errors.Join(err, keeper.Forget(ctx, j.key))
		}
	}
	if failed := os.Remove(j.counted); !errors.Is(failed, iofs.ErrNotExist) {
		err = errors.Join(err, failed)
	}
	if err != nil {
		j.tell("left behind: %v", err)
	}
}
