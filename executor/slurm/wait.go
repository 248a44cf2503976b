package slurm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/job/poll"
)

// Wait follows a job until it no longer runs. told is called when its state, reason or node changes; it may be nil.
// All waits share one reading of the queue. Wait cancels a job that waits for something that never comes. The end of
// ctx ends the wait, not the job.
func (c *Cluster) Wait(ctx context.Context, id job.ID, told func(job.Status)) (job.End, error) {
	if err := id.Check(isNumber); err != nil {
		return job.End{}, err
	}
	f := &follower{c: c, id: id, told: told, held: true}
	return poll.Until(ctx, c.jobs, f.judge)
}

// Cancel ends a job and returns when it no longer runs: its processes can no longer write, if Slurm reaches its node
// and tracks processes by cgroup. A job that ignores SIGTERM takes the cluster's KillWait (30 s). If ctx ends, Cancel
// returns an error, and the cancellation continues.
func (c *Cluster) Cancel(ctx context.Context, id job.ID) error {
	if err := id.Check(isNumber); err != nil {
		return err
	}
	_, err := c.cancel(ctx, id)
	return err
}

// again is the time after which the cancellation of a running job is repeated.
const again = 30 * time.Second

func (c *Cluster) cancel(ctx context.Context, id job.ID) (job.End, error) {
	f := &follower{c: c, id: id, cancels: true}
	end, err := poll.Until(ctx, c.jobs, f.judge)
	if err != nil && f.status.State != "" {
		err = fmt.Errorf("job %s: is still %s: %w", id.Name(), f.status.State, err)
	}
	return end, err
}

// follower is one wait for the end of a job.
type follower struct {
	c       *Cluster
	id      job.ID
	told    func(job.Status)
	held    bool // cancels a job that is stuck
	cancels bool // cancels the job in any case

	status job.Status
	since  time.Time // time of the first reading without the job; zero: the last reading has it
	asked  time.Time // last time scontrol was asked about the missing job
	stuck  time.Time // since when it has been stuck for the same reason; zero: it is not
	sent   time.Time // last time scancel succeeded
}

func (f *follower) judge(ctx context.Context, l *look) (job.End, bool, error) {
	if l.Err != nil {
		f.since, f.stuck = time.Time{}, time.Time{} // the periods of absence and of being stuck start again
		return job.End{}, false, nil
	}
	e, ok := l.Jobs[f.id.Name()]
	if !ok || e.key != f.id.Key() {
		return f.absent(ctx)
	}
	f.since = time.Time{}
	f.tell(e.status)
	if ended(e.status.State) {
		return f.ended(ctx, e)
	}
	return f.stay(ctx)
}

func (f *follower) tell(s job.Status) {
	if f.stuck.IsZero() || s.Reason != f.status.Reason || s.State != f.status.State {
		f.stuck = time.Now()
	}
	before := f.status
	f.status = s
	if f.told != nil && (before.State != s.State || before.Reason != s.Reason || before.Node != s.Node) {
		f.told(explained(s, f.id.Name()))
	}
}

// ended returns how a job ended. If neither the controller nor the accounts know, the state in the queue counts. If
// the controller does not answer, the next reading tries again.
func (f *follower) ended(ctx context.Context, e entry) (job.End, bool, error) {
	if e.status.State == job.Completed {
		return job.End{Status: e.status}, true, nil
	}
	detail, known, err := f.detail(ctx)
	switch {
	case err != nil:
		return job.End{}, false, nil
	case !known:
		detail, known = f.account(ctx)
	}
	if known && ended(detail.status.State) {
		e.code, e.signal = detail.code, detail.signal
	}
	return e.end(), true, nil
}

// end returns the end of a job. Slurm 26.05 reports a signal for the job of a dead node, although nobody sent one.
func (e entry) end() job.End {
	if e.status.State == "NODE_FAIL" {
		e.signal = 0
	}
	return job.End{Status: e.status, Code: e.code, Signal: e.signal}
}

// absent handles a reading without the job. It asks the controller with scontrol, and then the accounts.
func (f *follower) absent(ctx context.Context) (job.End, bool, error) {
	now := time.Now()
	if f.since.IsZero() {
		f.since = now
	}
	if f.asked.IsZero() || now.Sub(f.asked) >= f.c.o.Grace {
		f.asked = now
		switch e, known, err := f.detail(ctx); {
		case err != nil:
			f.since, f.asked = time.Time{}, time.Time{}
			return job.End{}, false, nil
		case known && ended(e.status.State):
			f.tell(e.status)
			return e.end(), true, nil
		case known:
			f.since = time.Time{}
			f.tell(e.status)
			return job.End{}, false, nil
		}
	}
	if now.Sub(f.since) < f.c.o.Grace {
		return job.End{}, false, nil
	}
	if e, known := f.account(ctx); known && ended(e.status.State) {
		f.tell(e.status)
		return e.end(), true, nil
	}
	return job.End{Status: f.status, Lost: true}, true, nil
}

// stay handles a job that has not ended: it cancels one that has been stuck for a while.
func (f *follower) stay(ctx context.Context) (job.End, bool, error) {
	if f.cancels && f.status.State != "COMPLETING" && (f.sent.IsZero() || time.Since(f.sent) >= again) {
		// whether it failed or not, the next reading shows the job's state
		if _, err := f.c.run(ctx, call{name: "scancel", args: []string{f.id.Name()}}); err == nil {
			f.sent = time.Now()
		}
	}
	kind := stuckOf(f.status)
	if kind == moves {
		f.stuck = time.Time{}
	}
	if kind == moves || !f.held || time.Since(f.stuck) < f.c.o.Grace {
		return job.End{}, false, nil
	}
	if kind == requeued {
		if e, known, err := f.detail(ctx); err != nil || !known || e.restarts == 0 {
			return job.End{}, false, nil
		}
	}
	held := f.status
	end, err := f.c.cancel(ctx, f.id)
	if err != nil {
		return job.End{}, false, err
	}
	end.Held = held.Reason
	if held.Reason == "" {
		end.Held = string(held.State)
	}
	return end, true, nil
}

// detail asks the controller for the job. known is false if the controller answers that there is none.
func (f *follower) detail(ctx context.Context) (e entry, known bool, err error) {
	f.c.details <- struct{}{}
	defer func() { <-f.c.details }()
	out, err := f.c.run(ctx, call{name: "scontrol", args: []string{"--oneliner", "show", "job", f.id.Name()}})
	var no *failure
	if errors.As(err, &no) && strings.Contains(no.words, "Invalid job id") {
		return entry{}, false, nil
	}
	if err != nil {
		return entry{}, false, err
	}
	ours := strings.Contains(strings.ReplaceAll(out, "\n", " ")+" ", "/"+f.id.Key()+ofJob+" ") // its WorkDir
	if e, ok := parseJob(out); ok && e.number == f.id.Name() && ours {
		return e, true, nil
	}
	return entry{}, false, nil
}

// account asks the accounts for the job, if the cluster keeps any. Accounts may lack comments, so the time of
// submission distinguishes a later job with the same number.
func (f *follower) account(ctx context.Context) (e entry, known bool) {
	if f.c.programs["sacct"] == "" {
		return entry{}, false
	}
	f.c.details <- struct{}{}
	defer func() { <-f.c.details }()
	out, err := f.c.run(ctx, call{name: "sacct", args: []string{"--noheader", "--allocations", "--parsable2",
		"--jobs=" + f.id.Name(), "--format=" + accountFormat}})
	if err != nil {
		return entry{}, false
	}
	e, known = parseAccount(out, f.id.Name())
	if known && !f.status.Submitted.IsZero() && !e.status.Submitted.IsZero() {
		known = e.status.Submitted.Sub(f.status.Submitted).Abs() <= time.Second
	}
	return e, known
}
