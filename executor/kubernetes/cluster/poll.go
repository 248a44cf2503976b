package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// look is one reading of all Jobs of the namespace that benchgraph made, with their Pods.
type look struct {
	done chan struct{}    // closed when the rest is there
	jobs map[string]entry // by ID
	err  error
}

// entry is one Job with its Pods, the newest last.
type entry struct {
	job  *batchv1.Job
	pods []corev1.Pod
}

// look reads the Jobs. The reading begins after the call; all who call before it begins share it.
func (c *Cluster) look(ctx context.Context) (*look, error) {
	c.mu.Lock()
	if c.next == nil {
		c.next = &look{done: make(chan struct{})}
	}
	l := c.next
	if !c.looking {
		c.looking = true
		go c.carryOut()
	}
	c.mu.Unlock()
	select {
	case <-l.done:
		return l, l.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// carryOut carries out looks, one after another, as long as any are wanted.
func (c *Cluster) carryOut() {
	for {
		c.mu.Lock()
		l := c.next
		c.next = nil
		if l == nil {
			c.looking = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		if l.jobs, l.err = c.list(); l.err != nil {
			c.told(silent, l.err)
		} else {
			c.over(silent)
		}
		close(l.done)
	}
}

// list asks for the Jobs and then for the Pods: a Job that has ended by then has the Pod that it ended with.
func (c *Cluster) list() (map[string]entry, error) {
	ctx, stop := context.WithTimeoutCause(context.Background(), answerTime,
		fmt.Errorf("no answer within %s", answerTime))
	defer stop()
	jobs, pods := &batchv1.JobList{}, &corev1.PodList{}
	if err := c.get("jobs").Param("labelSelector", ours+"="+oursValue).Do(ctx).Into(jobs); err != nil {
		return nil, err
	}
	if err := c.get("pods").Param("labelSelector", ours+"="+oursValue).Do(ctx).Into(pods); err != nil {
		return nil, err
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	of := map[string][]corev1.Pod{} // by the UID of the Job
	for _, p := range pods.Items {
		for _, owner := range p.OwnerReferences {
			if owner.Kind == "Job" {
				of[string(owner.UID)] = append(of[string(owner.UID)], p)
			}
		}
	}
	all := map[string]entry{}
	for i := range jobs.Items {
		j := &jobs.Items[i]
		all[string(idOf(j))] = entry{j, of[string(j.UID)]}
	}
	return all, nil
}

// waiter is one who is handed each look of the shared poll.
type waiter struct {
	since time.Time
	looks chan *look // has room for the last one
}

// join begins to hand looks to a new waiter. leave ends it.
func (c *Cluster) join() *waiter {
	w := &waiter{time.Now(), make(chan *look, 1)}
	c.mu.Lock()
	c.waiting[w] = true
	if !c.polling {
		c.polling = true
		go c.poll()
	}
	c.mu.Unlock()
	c.changed()
	return w
}

func (c *Cluster) leave(w *waiter) {
	c.mu.Lock()
	delete(c.waiting, w)
	c.mu.Unlock()
	c.changed()
}

func (c *Cluster) changed() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// poll looks at the Jobs for all who wait, as long as there is one.
func (c *Cluster) poll() {
	for last := (time.Time{}); ; {
		every, any := c.every()
		if !any {
			return
		}
		if rest := time.Until(last.Add(every)); rest > 0 {
			select {
			case <-time.After(rest):
			case <-c.wake: // a new waiter may want to know sooner
				continue
			}
		}
		last = time.Now()
		l, _ := c.look(context.Background()) // its error is for the waiters
		c.mu.Lock()
		for w := range c.waiting {
			select {
			case <-w.looks: // nobody took the one before
			default:
			}
			w.looks <- l
		}
		c.mu.Unlock()
	}
}

// every is the time between two looks. Where nobody waits, it ends the poll.
func (c *Cluster) every() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.polling = false
		return 0, false
	}
	if c.o.Every > 0 {
		return c.o.Every, true
	}
	youngest := time.Hour
	for w := range c.waiting {
		youngest = min(youngest, time.Since(w.since))
	}
	return min(max(youngest/20, time.Second), 30*time.Second), true
}
