package cluster

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchgraph/benchgraph/executor/job/poll"
	"github.com/benchgraph/benchgraph/executor/kubernetes/cluster/api"
)

// look is one reading of all Jobs of the namespace that benchgraph made, by ID, with their Pods.
type look = poll.Look[entry]

// entry is one Job with its Pods, the newest last.
type entry struct {
	job  *batchv1.Job
	pods []corev1.Pod
}

// list reads all Jobs of the namespace that benchgraph made, and then their Pods: so each ended Job is listed with
// its last Pod.
func (c *Cluster) list() (all map[string]entry, err error) {
	defer func() {
		if err != nil {
			c.has(err)
		} else {
			c.answered()
		}
	}()
	ctx, stop := api.Within(context.Background())
	defer stop()
	jobs, pods := &batchv1.JobList{}, &corev1.PodList{}
	if err := c.api.To("GET", "jobs").Param("labelSelector", ours+"="+oursValue).Do(ctx).Into(jobs); err != nil {
		return nil, err
	}
	if err := c.api.To("GET", "pods").Param("labelSelector", ours+"="+oursValue).Do(ctx).Into(pods); err != nil {
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
	all = map[string]entry{}
	for i := range jobs.Items {
		j := &jobs.Items[i]
		all[string(idOf(j))] = entry{j, of[string(j.UID)]}
	}
	return all, nil
}
