package cluster

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchgraph/benchgraph/executor/job"
)

// machines are the nodes of the cluster at one time.
type machines struct {
	asked time.Time
	nodes []corev1.Node
	known bool // the user may list nodes
}

// explain looks for the obstacle of a Job that has not started, if neither the Job nor its Pod names it: in their
// events and in the nodes. If the user may not read those, the Job waits without a reason.
func (f *follower) explain(ctx context.Context, e entry, v *verdict) {
	if v.stuck.last != 0 || suspended(e.job) ||
		time.Since(e.job.CreationTimestamp.Time) < f.c.o.Grace/4 {
		return
	}
	var pod *corev1.Pod
	if len(e.pods) > 0 {
		pod = &e.pods[len(e.pods)-1]
	}
	switch {
	case pod == nil || v.Node != "":
		if time.Since(f.asked) >= f.c.o.Grace/2 {
			f.asked, f.hint = time.Now(), f.c.events(ctx, e.job, pod)
		}
		if f.hint.why != "" {
			v.Reason, v.stuck = f.hint.why, f.hint
		}
	default:
		if nodes, known := f.c.nodes(ctx); known && !slices.ContainsFunc(nodes, func(n corev1.Node) bool {
			return fits(&n, &pod.Spec)
		}) {
			v.Reason = cmp.Or(v.Reason, "no node of the cluster could take its Pod")
			v.stuck = stuck{v.Reason, scaled}
		}
	}
}

// events returns the obstacle of a Job without a Pod, or of a Pod that has a node.
func (c *Cluster) events(ctx context.Context, j *batchv1.Job, pod *corev1.Pod) stuck {
	if pod == nil {
		words := c.warning(ctx, j.UID, "FailedCreate")
		return stuck{words, creation(words)}
	}
	words := c.warning(ctx, pod.UID, "Failed")
	if words == "" {
		return stuck{}
	}
	return stuck{words, patient}
}

// creation returns how many times the grace a Job may have no Pod for that reason.
func creation(words string) int {
	over, alone := quota(words)
	switch {
	case over && !alone:
		return 0
	case over, strings.Contains(words, "violates PodSecurity"):
		return atOnce
	}
	return soon
}

// warning returns the message of the newest event about an object if that event is a warning whose reason begins with
// reason. Otherwise it returns "": a later event shows that the warning no longer holds. Other warnings are ignored:
// a Pod that waited for a node has a warning about that before its image is pulled.
func (c *Cluster) warning(ctx context.Context, of types.UID, reason string) string {
	ctx, stop := context.WithTimeout(ctx, lastWord)
	defer stop()
	list := &corev1.EventList{}
	if c.api.To("GET", "events").Param("fieldSelector", "involvedObject.uid="+string(of)).Do(ctx).Into(list) != nil {
		return ""
	}
	var newest time.Time
	words := ""
	for _, e := range list.Items {
		fails := e.Type == corev1.EventTypeWarning && strings.HasPrefix(e.Reason, reason)
		if !fails && e.Type == corev1.EventTypeWarning {
			continue
		}
		if at := last(&e); at.After(newest) || at.Equal(newest) && !fails { // times are whole seconds
			newest, words = at, ""
			if fails {
				words = job.Words(e.Message)
			}
		}
	}
	return words
}

// last returns when an event last happened, in whole seconds.
func last(e *corev1.Event) time.Time {
	at := e.LastTimestamp.Time
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	if at.IsZero() {
		at = e.EventTime.Time
	}
	return at.Truncate(time.Second)
}

// nodes returns the nodes, at most one minute old; known is false if the user may not list them.
func (c *Cluster) nodes(ctx context.Context) ([]corev1.Node, bool) {
	c.mu.Lock()
	m := c.machines
	c.mu.Unlock()
	if time.Since(m.asked) < min(time.Minute, c.o.Grace) {
		return m.nodes, m.known
	}
	ctx, stop := context.WithTimeout(ctx, lastWord)
	defer stop()
	list := &corev1.NodeList{}
	err := c.api.Of("nodes").Get().Resource("nodes").Do(ctx).Into(list)
	m = machines{time.Now(), list.Items, err == nil}
	c.mu.Lock()
	c.machines = m
	c.mu.Unlock()
	return m.nodes, m.known
}

// fits reports whether a node could ever take a Pod, if nothing else ran there.
func fits(n *corev1.Node, pod *corev1.PodSpec) bool {
	for label, value := range pod.NodeSelector {
		if has, ok := n.Labels[label]; !ok || has != value {
			return false
		}
	}
	for _, taint := range n.Spec.Taints {
		passing := strings.HasPrefix(taint.Key, "node.kubernetes.io/") // reflects the node's state, which changes
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || passing {
			continue
		}
		if !slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) }) {
			return false
		}
	}
	for _, container := range pod.Containers {
		for name, asked := range container.Resources.Requests {
			if has := n.Status.Allocatable[name]; has.Cmp(asked) < 0 {
				return false
			}
		}
	}
	return true
}

func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	return t.Key == taint.Key && (t.Effect == "" || t.Effect == taint.Effect) &&
		(t.Operator == corev1.TolerationOpExists || t.Value == taint.Value)
}

// greater reports whether amount a is greater than b; false if either is malformed.
func greater(a, b string) bool {
	x, err := resource.ParseQuantity(a)
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(b)
	return err == nil && x.Cmp(y) > 0
}
