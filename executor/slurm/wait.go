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

// Wait follows a job until it no longer runs. told is called when its state, reason or node is another one, and may be
// nil. All waits share one reading of the queue. A job that waits for something that never comes is cancelled. The end
// of ctx ends the wait and leaves the job.
func (c *Cluster) Wait(ctx context.Context, id job.ID, told func(job.Status)) (job.End, error) {
	if err := id.Check(isNumber); err != nil {
		return job.End{}, err
	}
	f := &follower{c: c, id: id, told: told, held: true}
	return poll.Until(ctx, c.jobs, f.judge)
}

// Cancel ends a job, and returns when it no longer runs: none of its processes can write any more, where Slurm reaches
// its node and follows processes by cgroup. One that does not want to end takes the cluster's KillWait (30 s). The end
// of ctx ends the wait with an error, and what was sent to Slurm by then goes on.
func (c *Cluster) Cancel(ctx context.Context, id job.ID) error {
	if err := id.Check(isNumber); err != nil {
		return err
	}
	_, err := c.cancel(ctx, id)
	return err
}

// again is the time after which a job that still runs is cancelled once more.
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
	held    bool // it cancels a job that is stuck
	cancels bool // it cancels the job in any case

	status job.Status
	since  time.Time // of the first look that lacks the job; zero: it is there
	asked  time.Time // when scontrol was asked about a job that is absent
	stuck  time.Time // since when it has been stuck, for the same reason; zero: it is not
	sent   time.Time // when scancel last said that it did its work
}

func (f *follower) judge(ctx context.Context, l *look) (job.End, bool, error) {
	if l.Err != nil {
		f.since, f.stuck = time.Time{}, time.Time{} // from here on, nothing is known to have lasted
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

// ended asks how a job ended. Where nobody knows any more, the queue's word counts; where nobody answers, the next look
// comes to it again.
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

// end is the end of a job that is over. Slurm 26.05 gives the job of a node that died a signal, which nobody
// sent.
func (e entry) end() job.End {
	if e.status.State == "NODE_FAIL" {
		e.signal = 0
	}
	return job.End{Status: e.status, Code: e.code, Signal: e.signal}
}

// absent judges a job that a look lacks. The controller is asked for it in another way, and then the accounts.
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

// stay judges a job that has not ended: one that has been stuck for a while is cancelled.
func (f *follower) stay(ctx context.Context) (job.End, bool, error) {
	if f.cancels && f.status.State != "COMPLETING" && (f.sent.IsZero() || time.Since(f.sent) >= again) {
		// whether it failed or not, the next look says what became of the job
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

// detail asks the controller for the job. known is false where the controller answers that there is none.
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
	ours := strings.Contains(strings.ReplaceAll(out, "\n", " ")+" ", " Comment="+mark+f.id.Key()+" ")
	if e, ok := parseJob(out); ok && e.number == f.id.Name() && ours {
		return e, true, nil
	}
	return entry{}, false, nil
}

// account asks the accounts for the job, where the cluster keeps any. They need not keep comments: a later job of the
// same number is told by the time of its submission.
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
