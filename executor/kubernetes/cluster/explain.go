package cluster

import (
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

// machines are the nodes of the cluster.
type machines struct {
	asked time.Time
	nodes []corev1.Node
	known bool // the user may list them
}

// explain looks for what hinders a Job that has not begun, where the Job and its Pod do not say: the events of the two,
// and the nodes. A user who may not see those waits without a reason.
func (f *follower) explain(ctx context.Context, e entry, v *verdict) {
	if v.stuck.last != 0 || e.job.Spec.Suspend != nil && *e.job.Spec.Suspend ||
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
			v.stuck = stuck{v.Reason, scaled}
		}
	}
}

// events says what hinders a Job without a Pod, or a Pod that has a node.
func (c *Cluster) events(ctx context.Context, j *batchv1.Job, pod *corev1.Pod) stuck {
	if pod == nil {
		words := c.warning(ctx, j.UID, "FailedCreate")
		return stuck{words, creation(words)}
	}
	return stuck{c.warning(ctx, pod.UID, "Failed"), patient}
}

// creation says how many times the grace a Job may be without a Pod for such a reason.
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

// warning is the message of the newest warning about an object whose reason begins with a text; "" if there is none.
func (c *Cluster) warning(ctx context.Context, of types.UID, reason string) string {
	ctx, stop := context.WithTimeout(ctx, lastWord)
	defer stop()
	list := &corev1.EventList{}
	err := c.get("events").Param("fieldSelector", "type=Warning,involvedObject.uid="+string(of)).Do(ctx).Into(list)
	if err != nil {
		return ""
	}
	var newest time.Time
	words := ""
	for _, e := range list.Items {
		at := e.LastTimestamp.Time
		if at.IsZero() {
			at = e.EventTime.Time
		}
		if strings.HasPrefix(e.Reason, reason) && !at.Before(newest) {
			newest, words = at, job.Words(e.Message)
		}
	}
	return words
}

// nodes returns the nodes as they were within the last minute; false where the user may not see them.
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
	err := c.core.Get().Resource("nodes").Do(ctx).Into(list)
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
		passing := strings.HasPrefix(taint.Key, "node.kubernetes.io/") // of the node's state, which changes
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || passing {
			continue
		}
		if !slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) }) {
			return false
		}
	}
	for name, asked := range pod.Containers[0].Resources.Requests {
		if has := n.Status.Allocatable[name]; has.Cmp(asked) < 0 {
			return false
		}
	}
	return true
}

func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	return t.Key == taint.Key && (t.Effect == "" || t.Effect == taint.Effect) &&
		(t.Operator == corev1.TolerationOpExists || t.Value == taint.Value)
}

// greater compares two amounts; false where one is none.
func greater(a, b string) bool {
	x, err := resource.ParseQuantity(a)
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(b)
	return err == nil && x.Cmp(y) > 0
}
