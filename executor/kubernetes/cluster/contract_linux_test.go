package cluster_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/job/jobtest"
	"github.com/benchgraph/benchgraph/executor/kubernetes"
	"github.com/benchgraph/benchgraph/executor/kubernetes/kubetest"
)

// contract is the suite of all schedulers.
func contract(t *testing.T, c *kubetest.Cluster) {
	traits := jobtest.Traits{Every: 100 * time.Millisecond, Container: true, Follows: true, Late: true, Deletes: true}
	jobtest.Run(t, traits, func(t *testing.T) jobtest.Site {
		s := newSite(t, c, kubernetes.Asks{})
		s.Play(t, s.namespace, "PATH=/usr/bin:/bin")
		return jobtest.Site{
			Client: func() job.Scheduler {
				return s.open(kubernetes.Asks{Image: kubetest.Image, Namespace: s.namespace})
			},
			Never: "benchgraph-0.0/never", Dir: t.TempDir(), Told: s.told,
			Hold:    func(held bool) { s.Hold(s.namespace, held) },
			Silence: func(silent bool) { s.Silence(s.namespace, silent) },
			Lose: func(made bool, times int) job.Scheduler {
				s.Lose(s.namespace, made, times)
				return s.client
			},
			Seen: func() (all string) {
				for _, resource := range []string{"pods", "events", "configmaps"} {
					text, err := s.Core.Get().Namespace(s.namespace).Resource(resource).DoRaw(t.Context())
					if all += string(text); err != nil {
						t.Error(err)
					}
				}
				text, err := s.Batch.Get().Namespace(s.namespace).Resource("jobs").DoRaw(t.Context())
				if err != nil {
					t.Error(err)
				}
				return all + string(text)
			},
			Kept: s.secretsOf,
			Count: func() jobtest.Count {
				return jobtest.Count{Looks: s.Calls(s.namespace, "GET jobs"),
					Submits: s.Calls(s.namespace, "POST jobs")}
			},
			Impossible: func(j *job.Job) { j.GPUs = 8 },
			Ends:       s.endings(),
		}
	})
}

// endings are the many ways in which a Pod is ended.
func (s *site) endings() map[string]jobtest.Ending {
	patch := func(state job.State, reason, status string) jobtest.Ending {
		return jobtest.Ending{State: state, Reason: reason, End: func(id job.ID) { s.patch(id, status) }}
	}
	zero, background := int64(0), metav1.DeletePropagationBackground
	return map[string]jobtest.Ending{
		"time limit": {Time: time.Second, State: job.Timeout, Reason: "longer than the specified deadline"},
		"out of memory": {State: job.OutOfMemory, Signal: 9, Reason: "OOMKilled", End: func(id job.ID) {
			s.patch(id, terminated("137", "OOMKilled"))
		}},
		"evicted":   patch("PREEMPTED", "low on memory", ended("Evicted", "The node was low on memory")),
		"admission": patch("NODE_FAIL", "no devices", ended("UnexpectedAdmissionError", "no devices")),
		"preempted": patch("PREEMPTED", "for others", disruption("PreemptionByScheduler", "")),
		"drained":   patch("PREEMPTED", "for others", disruption("EvictionByEvictionAPI", "")),
		"node lost": patch("NODE_FAIL", "for others", disruption("DeletionByTaintManager", "")),
		"shutdown": patch("NODE_FAIL", "for others",
			disruption("TerminationByKubelet", `"reason":"Terminated",`)),
		"succeeded": patch(job.Completed, "", `{"phase":"Succeeded"}`),
		"its pod is deleted": {State: "PREEMPTED", End: func(id job.ID) {
			if err := s.Core.Delete().Namespace(s.namespace).Resource("pods").Name(s.pod(id).Name).
				Body(&metav1.DeleteOptions{GracePeriodSeconds: &zero}).Do(s.t.Context()).Error(); err != nil {
				s.t.Fatal(err)
			}
		}},
		"deleted": {End: func(id job.ID) {
			if err := s.Batch.Delete().Namespace(s.namespace).Resource("jobs").Name(s.named(id).Name).
				Body(&metav1.DeleteOptions{PropagationPolicy: &background}).Do(s.t.Context()).Error(); err != nil {
				s.t.Fatal(err)
			}
		}},
		"suspended by Kueue": {State: "PREEMPTED", End: func(id job.ID) {
			if err := s.Batch.Patch(types.MergePatchType).Namespace(s.namespace).Resource("jobs").
				Name(s.named(id).Name).Body([]byte(`{"spec":{"suspend":true}}`)).Do(s.t.Context()).Error(); err != nil {
				s.t.Fatal(err)
			}
		}},
	}
}

// named is the Job of an ID; nil: it is gone.
func (s *site) named(id job.ID) *batchv1.Job {
	s.t.Helper()
	for _, j := range s.jobs() {
		if j.Annotations["benchgraph/key"] == id.Key() {
			return &j
		}
	}
	return nil
}

// secretsOf are the Secrets of the Job of a key.
func (s *site) secretsOf(key string) (names []string) {
	s.t.Helper()
	list, j := &corev1.SecretList{}, s.named(job.NewID("x", key))
	if err := s.Core.Get().Namespace(s.namespace).Resource("secrets").Do(s.t.Context()).Into(list); err != nil {
		s.t.Fatal(err)
	}
	for _, x := range list.Items {
		if len(x.OwnerReferences) > 0 && j != nil && x.OwnerReferences[0].UID == j.UID {
			names = append(names, x.Name)
		}
	}
	return names
}
