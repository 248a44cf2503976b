package cluster

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/job/poll"
	"github.com/benchgraph/benchgraph/executor/kubernetes/cluster/api"
)

// Wait follows a Job until it no longer runs. told is called when its state, reason or node changes; it may be nil.
// All waits share one reading of the Jobs. Wait deletes a Job that waits for something that never comes, and a Job
// that was taken from its node and would start again. The end of ctx ends the wait, not the Job.
func (c *Cluster) Wait(ctx context.Context, id job.ID, told func(job.Status)) (job.End, error) {
	if err := id.Check(isName); err != nil {
		return job.End{}, err
	}
	f := &follower{c: c, id: id, told: told}
	end, err := poll.Until(ctx, c.jobs, f.judge)
	if err == nil && f.last.job != nil {
		c.forget(f.last)
	}
	return end, err
}

// forget deletes the Secret of a Job whose Pod no longer needs it. If that fails, the Secret is deleted with the Job.
func (c *Cluster) forget(e entry) {
	ctx, stop := context.WithTimeout(context.Background(), lastWord)
	defer stop()
	_ = c.api.To("DELETE", "secrets").Name(e.job.Name + "-" + secretSuffix(e.job)).Do(ctx).
		Error()
}

// Cancel deletes a Job and returns when its Pods are gone: its processes can no longer write, unless the node is
// unreachable. If ctx ends, Cancel returns an error, and the deletion continues.
func (c *Cluster) Cancel(ctx context.Context, id job.ID) error {
	if err := id.Check(isName); err != nil {
		return err
	}
	f := &follower{c: c, id: id, cancels: true}
	_, err := poll.Until(ctx, c.jobs, f.judge)
	if err != nil && f.status.State != "" {
		err = fmt.Errorf("job %s: is still %s: %w", id.Name(), f.status.State, err)
	}
	return err
}

// follower is one wait for the end of a Job.
type follower struct {
	c       *Cluster
	id      job.ID
	told    func(job.Status)
	cancels bool // it deletes the Job

	last   entry // last state seen; without a Job if it was never seen
	status job.Status
	ran    bool      // it was seen running
	forgot bool      // its Secret was deleted
	absent int       // number of successive readings without it
	why    string    // why it is stuck
	since  time.Time // since when that is the reason
	asked  time.Time // time of the last request for events
	hint   stuck     // result of that request
	sent   time.Time // time of the last accepted deletion
}

func (f *follower) judge(ctx context.Context, l *look) (job.End, bool, error) {
	if l.Err != nil {
		f.absent, f.why = 0, "" // the periods of absence and of an obstacle start again
		return job.End{}, false, nil
	}
	e, ok := l.Jobs[string(f.id)]
	if !ok {
		return f.gone()
	}
	stays := stranded(e, f.c.o.Grace)
	if len(e.pods) == 0 && !suspended(e.job) {
		e.pods = f.last.pods // the last status of a deleted Pod, such as why it was deleted
	}
	f.absent, f.last = 0, e
	v := e.verdict()
	if v.over && !f.cancels {
		f.tell(v.Status)
		return v.End, true, nil
	}
	if v.State == job.Pending && f.ran && !f.cancels { // Kueue took it from its node and would start it again
		v.State, v.Reason = preempted, "its Pod was taken from the node"
		err := f.c.Cancel(ctx, f.id)
		return v.End, err == nil, err
	}
	if f.ran = f.ran || v.State == job.Running; !f.forgot && f.c.o.Queue == "" && started(e) {
		f.forgot = true
		f.c.forget(e)
	}
	if f.cancels {
		f.delete(ctx)
	}
	if stays {
		v.State, v.Reason = nodeFail, "the node does not end its Pod"
		_ = f.c.remove(ctx, e.job, metav1.DeletePropagationBackground)
		return v.End, true, nil
	}
	if v.State == job.Pending && !f.cancels {
		f.explain(ctx, e, &v)
	}
	f.tell(v.Status)
	return f.stay(ctx, v)
}

// started reports whether the container of a Job was made: its variables are set, and it is never made anew. Only Kueue
// may start a Job a second time, with another Pod.
func started(e entry) bool {
	return slices.ContainsFunc(e.pods, func(p corev1.Pod) bool { return own(&p).Running != nil })
}

// gone handles a reading without the Job: after two in a row, somebody has deleted it.
func (f *follower) gone() (job.End, bool, error) {
	if f.absent++; f.absent < 2 {
		return job.End{}, false, nil
	}
	end := job.End{Status: f.status, Lost: !f.cancels}
	if f.cancels {
		end.State = cancelled
	}
	return end, true, nil
}

func (f *follower) tell(s job.Status) {
	before := f.status
	f.status = s
	if f.told != nil && (before.State != s.State || before.Reason != s.Reason || before.Node != s.Node) {
		f.told(s)
	}
}

// again is the time after which the deletion of a remaining Job is repeated.
const again = 30 * time.Second

// delete deletes the Job, which stays until its Pods are gone.
func (f *follower) delete(ctx context.Context) {
	if !f.sent.IsZero() && time.Since(f.sent) < again {
		return
	}
	if f.c.remove(ctx, f.last.job, metav1.DeletePropagationForeground) == nil {
		f.sent = time.Now()
	}
}

// stay handles a Job that has not ended: it deletes one that has been stuck for too long.
func (f *follower) stay(ctx context.Context, v verdict) (job.End, bool, error) {
	// Compare only the limit: the text of the same reason may contain changing numbers.
	if v.stuck.last == 0 {
		f.why = ""
		return job.End{}, false, nil
	}
	if kind := fmt.Sprint(v.stuck.last); kind != f.why {
		f.why, f.since = kind, time.Now()
	}
	if time.Since(f.since) < time.Duration(v.stuck.last)*f.c.o.Grace {
		return job.End{}, false, nil
	}
	v.State, v.Held = cancelled, v.stuck.why
	err := f.c.Cancel(ctx, f.id)
	return v.End, err == nil, err
}

// stranded reports whether a node should have ended a Pod of the Job long ago.
func stranded(e entry, grace time.Duration) bool {
	for _, p := range e.pods {
		if p.DeletionTimestamp == nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		// The deletion time includes the grace period and is a whole second.
		if time.Since(p.DeletionTimestamp.Time) > soon*grace+time.Second {
			return true
		}
	}
	return false
}

// Log writes the output of a Job until it ends. It waits until the Job starts. For a Job whose Pod is gone or never
// ran, it writes nothing.
func (c *Cluster) Log(ctx context.Context, id job.ID, w io.Writer) error {
	if err := id.Check(isName); err != nil {
		return err
	}
	return c.jobs.Each(ctx, func(l *look) (bool, error) {
		e, ok := l.Jobs[string(id)]
		if l.Err != nil || ok && !over(e.job) && e.verdict().State == job.Pending {
			return false, nil
		}
		if len(e.pods) == 0 {
			return true, nil
		}
		return true, c.print(ctx, e.pods[len(e.pods)-1].Name, w)
	})
}

// print writes the output of a Pod. After a break of the connection, it goes on where it was.
func (c *Cluster) print(ctx context.Context, pod string, w io.Writer) error {
	p := &progress{w: w}
	for try := 0; ; try++ {
		had := p.n
		err := c.copyLog(ctx, pod, p)
		if p.err != nil {
			return p.err
		}
		if err == nil && p.skip > 0 {
			return fmt.Errorf("kubernetes: log of Pod %s: a part of it is gone", pod)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !api.Passes(err) || try == mostBreaks {
			return fmt.Errorf("kubernetes: log of Pod %s: %s", pod, api.Words(err))
		}
		if p.n > had {
			try = 0
		}
		job.Pause(ctx, c.o.Every, try)
	}
}

// mostBreaks bounds the tries in a row that bring nothing new, which take 3 minutes: the API server may be started
// anew, or the node may be gone.
const mostBreaks = 10

// progress counts what is written, without the first skip bytes.
type progress struct {
	w       io.Writer
	n, skip int64
	err     error // of w
}

func (p *progress) Write(text []byte) (int, error) {
	rest := text[min(p.skip, int64(len(text))):]
	p.skip -= int64(len(text) - len(rest))
	if len(rest) > 0 {
		var n int
		n, p.err = p.w.Write(rest)
		p.n += int64(n)
	}
	return len(text), p.err
}

// copyLog writes the output of a Pod from its beginning.
func (c *Cluster) copyLog(ctx context.Context, pod string, p *progress) error {
	p.skip = p.n
	body, err := c.api.To("GET", "pods").Name(pod).SubResource("log").Param("container", container).
		Param("follow", "true").Stream(ctx)
	if apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) { // the container never started
		return nil
	}
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(p, body)
	return err
}
