package cluster_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/job/jobtest"
	"github.com/benchgraph/benchgraph/executor/kubernetes"
	"github.com/benchgraph/benchgraph/executor/kubernetes/kubetest"
)

// contract is the suite of all schedulers.
func contract(t *testing.T, c *kubetest.Cluster) {
	traits := jobtest.Traits{Every: 100 * time.Millisecond, Container: true, Follows: true, Late: true, Deletes: true}
	if c.Real() {
		traits.Adds = []string{"HOME=", "HOSTNAME=", "KUBERNETES_", "SHLVL="}
	}
	ends := (*site).playedEndings
	if c.Real() {
		ends = (*site).realEndings
	}
	jobtest.Run(t, traits, func(t *testing.T) jobtest.Site {
		dir := t.TempDir()
		volumes := map[string]string{dir: "shared", "/usr": "programs"} // the image has links to what is in /usr
		s := newSite(t, c, kubernetes.Asks{Volumes: volumes})
		for at, name := range volumes {
			s.Claim(s.namespace, name, at)
		}
		s.Play(t, s.namespace, "PATH=/usr/bin:/bin")
		return jobtest.Site{
			Client: func() job.Scheduler {
				return s.open(kubernetes.Asks{Image: kubetest.Image, Namespace: s.namespace,
					Volumes: volumes})
			},
			Never: "benchgraph-0.0/never", Dir: dir, Told: s.told,
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
			Ends:       ends(s),
		}
	})
}

// playedEndings are the many ways in which a Pod is ended.
func (s *site) playedEndings() map[string]jobtest.Ending {
	patch := func(state job.State, reason, status string) jobtest.Ending {
		return jobtest.Ending{State: state, Reason: reason, End: func(id job.ID) { s.patch(id, status) }}
	}
	return s.with(map[string]jobtest.Ending{
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
		"drained, and gone": {State: "NODE_FAIL", Reason: "for others", End: func(id job.ID) {
			s.patch(id, strings.Replace(disruption("DeletionByTaintManager", ""), `"phase":"Failed",`, "", 1))
			time.Sleep(500 * time.Millisecond) // a look sees it
			p, zero := s.pod(id).Name, int64(0)
			if err := s.Core.Delete().Namespace(s.namespace).Resource("pods").Name(p).
				Body(&metav1.DeleteOptions{GracePeriodSeconds: &zero}).Do(s.t.Context()).Error(); err != nil {
				s.t.Fatal(err)
			}
		}},
		"succeeded": patch(job.Completed, "", `{"phase":"Succeeded"}`),
	})
}

// realEndings are those that a node and its controllers have.
func (s *site) realEndings() map[string]jobtest.Ending {
	return s.with(map[string]jobtest.Ending{
		"time limit": {Time: 20 * time.Second, State: job.Timeout, Reason: "longer than the specified deadline"},
		"drained": {State: "PREEMPTED", Reason: "Eviction API", End: func(id job.ID) {
			p := s.pod(id).Name
			s.Post(s.namespace, "pods/"+p+"/eviction",
				`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"`+p+`"}}`)
		}},
	})
}

// with adds the endings by a user, which nobody has to play.
func (s *site) with(all map[string]jobtest.Ending) map[string]jobtest.Ending {
	zero, background := int64(0), metav1.DeletePropagationBackground
	end := func(name string, state job.State, by func(id job.ID) rest.Result) {
		all[name] = jobtest.Ending{State: state, End: func(id job.ID) {
			if err := by(id).Error(); err != nil {
				s.t.Fatal(err)
			}
		}}
	}
	end("its pod is deleted", "PREEMPTED", func(id job.ID) rest.Result {
		return s.Core.Delete().Namespace(s.namespace).Resource("pods").Name(s.pod(id).Name).
			Body(&metav1.DeleteOptions{GracePeriodSeconds: &zero}).Do(s.t.Context())
	})
	end("deleted", "", func(id job.ID) rest.Result {
		return s.Batch.Delete().Namespace(s.namespace).Resource("jobs").Name(s.named(id).Name).
			Body(&metav1.DeleteOptions{PropagationPolicy: &background}).Do(s.t.Context())
	})
	end("suspended by Kueue", "PREEMPTED", func(id job.ID) rest.Result {
		return s.Batch.Patch(types.MergePatchType).Namespace(s.namespace).Resource("jobs").Name(s.named(id).Name).
			Body([]byte(`{"spec":{"suspend":true}}`)).Do(s.t.Context())
	})
	return all
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
