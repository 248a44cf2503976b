package cluster_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/kubernetes"
	"github.com/benchgraph/benchgraph/executor/kubernetes/kubetest"
)

// terminated is the status of a Pod whose command has ended.
func terminated(code, reason string) string {
	return `{"phase":"Failed","containerStatuses":[{"name":"job","image":"x","imageID":"","ready":false,
		"restartCount":0,"state":{"terminated":{"exitCode":` + code + `,"reason":"` + reason + `"}}}]}`
}

// ended is the status of a Pod that its kubelet has ended, or not begun.
func ended(reason, message string) string {
	return `{"phase":"Failed","reason":"` + reason + `","message":"` + message + `"}`
}

// disruption is the status of a Pod that was ended for others.
func disruption(reason, more string) string {
	return `{"phase":"Failed",` + more + `"conditions":[{"type":"DisruptionTarget","status":"True","reason":"` +
		reason + `","message":"for others\u001b[31m"}]}`
}

// A Pod is ended in many ways, and each has its state.
func ends(t *testing.T, c *kubetest.Cluster) {
	for name, want := range map[string]struct {
		status string
		state  job.State
		reason string
	}{
		"out of memory": {terminated("137", "OOMKilled"), job.OutOfMemory, "OOMKilled"},
		"deadline":      {ended("DeadlineExceeded", "too long"), job.Timeout, "too long"},
		"evicted":       {ended("Evicted", "The node was low on memory"), "PREEMPTED", "low on memory"},
		"admission":     {ended("UnexpectedAdmissionError", "no devices"), "NODE_FAIL", "no devices"},
		"preempted":     {disruption("PreemptionByScheduler", ""), "PREEMPTED", "for others"},
		"drained":       {disruption("EvictionByEvictionAPI", ""), "PREEMPTED", "for others"},
		"node lost":     {disruption("DeletionByTaintManager", ""), "NODE_FAIL", "for others"},
		"shutdown":      {disruption("TerminationByKubelet", `"reason":"Terminated",`), "NODE_FAIL", "for others"},
		"succeeded":     {`{"phase":"Succeeded"}`, job.Completed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, c, kubernetes.Asks{})
			s.Control(t, s.namespace)
			id := s.submit(s.job("end", "true"))
			s.patch(want.status)
			end := s.wait(id)
			if end.State != want.state || !strings.Contains(end.Reason, want.reason) ||
				strings.Contains(end.Reason, "\033") || end.Held != "" || end.Lost {
				t.Errorf("%+v", end)
			}
		})
	}
	t.Run("its pod is deleted", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, c, kubernetes.Asks{})
		s.Control(t, s.namespace)
		id := s.submit(s.job("end", "true"))
		p := s.pod()
		for s.jobs()[0].Status.StartTime == nil {
			time.Sleep(20 * time.Millisecond)
		}
		err := s.Core.Delete().Namespace(s.namespace).Resource("pods").Name(p.Name).Do(t.Context()).Error()
		if err != nil {
			t.Fatal(err)
		}
		if end := s.wait(id); end.State != "PREEMPTED" {
			t.Errorf("%+v", end)
		}
	})
}

// waiting is the status of a Pod whose container is not made.
func waiting(reason, message string) string {
	return `{"phase":"Pending","containerStatuses":[{"name":"job","image":"x","imageID":"","ready":false,
		"restartCount":0,"state":{"waiting":{"reason":"` + reason + `","message":"` + message + `"}}}]}`
}

// on asks for nodes of a kind.
func on(kind string) kubernetes.Asks {
	return kubernetes.Asks{NodeSelector: map[string]string{"kind": kind}}
}

// What can never run is cancelled after a while, with the reason; what may yet run is waited for.
func hinders(t *testing.T, c *kubetest.Cluster) {
	unschedulable := `{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable",
		"message":"0/1 nodes are available"}]}`
	for name, part := range map[string]struct {
		asks   kubernetes.Asks
		gpus   int
		quota  string
		status string
		held   string // "": it is waited for
	}{
		"no such image":  {status: waiting("ImagePullBackOff", "manifest unknown"), held: "manifest unknown"},
		"image name":     {status: waiting("InvalidImageName", "x y"), held: "InvalidImageName: x y"},
		"no secret":      {status: waiting("CreateContainerConfigError", "no key"), held: "no key"},
		"registry":       {status: waiting("ErrImagePull", "i/o timeout")},
		"being made":     {status: waiting("ContainerCreating", "")},
		"too many":       {gpus: 8, status: unschedulable, held: "0/1 nodes are available"},
		"no such node":   {asks: on("h100"), status: unschedulable, held: "0/1"},
		"full":           {asks: on("played"), gpus: 4, status: unschedulable},
		"quota for ever": {gpus: 4, quota: "requests.nvidia.com/gpu", held: "exceeded quota"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, c, part.asks)
			s.Nodes()
			s.Control(t, s.namespace)
			if part.quota != "" {
				s.Quota(s.namespace, map[string]string{part.quota: "2"}, map[string]string{part.quota: "0"})
			}
			j := s.job("held", "true")
			j.GPUs = part.gpus
			id := s.submit(j)
			if part.status != "" {
				s.patch(part.status)
			}
			if part.held == "" {
				st := s.reach(id, job.Pending)
				time.Sleep(2 * time.Second) // 10 times the grace
				if all := s.jobs(); len(all) != 1 || all[0].DeletionTimestamp != nil {
					t.Errorf("the Job that may yet run is gone: %+v", st)
				}
				return
			}
			if end := s.wait(id); !strings.Contains(end.Held, part.held) || len(s.jobs()) != 0 {
				t.Errorf("%+v; %d Jobs are left", end, len(s.jobs()))
			}
		})
	}
	t.Run("a quota of Jobs", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, c, kubernetes.Asks{})
		one := map[string]string{"count/jobs.batch": "1"}
		s.Quota(s.namespace, one, one)
		done := make(chan job.ID)
		go func() {
			id, _, err := s.client.Submit(t.Context(), s.job("second", "true"))
			if err != nil {
				t.Error(err)
			}
			done <- id
		}()
		select {
		case id := <-done:
			t.Fatalf("%s is there against the quota", id)
		case <-time.After(time.Second):
		}
		err := s.Core.Delete().Namespace(s.namespace).Resource("resourcequotas").Name("q").Do(t.Context()).Error()
		if err != nil {
			t.Fatal(err)
		}
		<-done
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.said) != 1 || !strings.Contains(s.said[0], "takes no more Jobs for now") {
			t.Errorf("%q", s.said)
		}
	})
}

// shape looks at what is asked for.
func shape(t *testing.T, c *kubetest.Cluster) {
	s := newSite(t, c, kubernetes.Asks{NodeSelector: map[string]string{"gpu": "h100"},
		Volumes:     map[string]string{"/models": "models"},
		Tolerations: []string{"nvidia.com/gpu:NoSchedule", "for=bench"}, PullSecret: "registry",
		ServiceAccount: "runner"})
	s.Control(t, s.namespace)
	j := s.job("shape", "true")
	j.GPUs, j.CPUs, j.Memory, j.Time, j.Exclusive = 2, 8, 1<<30, 90*time.Minute, true
	s.submit(j)
	p := s.pod().Spec
	main := p.Containers[0]
	gpus, memory := main.Resources.Limits["nvidia.com/gpu"], main.Resources.Requests[corev1.ResourceMemory]
	if gpus.Cmp(resource.MustParse("2")) != 0 || memory.Cmp(resource.MustParse("1Gi")) != 0 {
		t.Errorf("resources %+v", main.Resources)
	}
	if p.ActiveDeadlineSeconds == nil || *p.ActiveDeadlineSeconds != 5400 || *p.AutomountServiceAccountToken ||
		p.ServiceAccountName != "runner" || p.NodeSelector["gpu"] != "h100" ||
		p.ImagePullSecrets[0].Name != "registry" || p.Affinity.PodAntiAffinity == nil ||
		p.Tolerations[0].Operator != corev1.TolerationOpExists ||
		p.Tolerations[1].Value != "bench" || p.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("%+v", p)
	}
	claim := false
	for _, v := range p.Volumes {
		claim = claim || v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "models"
	}
	if !claim {
		t.Errorf("volumes %+v", p.Volumes)
	}
	spec := s.jobs()[0].Spec
	if *spec.BackoffLimit != 0 || *spec.TTLSecondsAfterFinished != 86400 {
		t.Errorf("%+v", spec)
	}
}

// An API server that does not answer says nothing: waits go on, and submissions find out what they did.
func away(t *testing.T, c *kubetest.Cluster) {
	s := newSite(t, c, kubernetes.Asks{})
	s.Control(t, s.namespace)
	id := s.submit(s.job("first", "true"))
	p := s.pod()
	ended := make(chan job.End)
	go func() {
		end, err := s.client.Wait(t.Context(), id, nil)
		if err != nil {
			t.Error(err)
		}
		ended <- end
	}()
	c.Away()
	submitted := make(chan job.ID)
	go func() {
		id, found, err := s.client.Submit(t.Context(), s.job("second", "true"))
		if err != nil || found {
			t.Errorf("%v, found: %v", err, found)
		}
		submitted <- id
	}()
	select {
	case end := <-ended:
		t.Errorf("a job ended while nobody could be asked: %+v", end)
	case id := <-submitted:
		t.Errorf("job %s was submitted to nobody", id)
	case <-time.After(3 * time.Second):
	}
	c.Back()
	if id := <-submitted; id == "" {
		t.Error("no job")
	}
	status := `{"status":{"phase":"Succeeded"}}`
	err := c.Core.Patch(types.StrategicMergePatchType).Namespace(s.namespace).Resource("pods").Name(p.Name).
		SubResource("status").Body([]byte(status)).Do(t.Context()).Error()
	if err != nil {
		t.Fatal(err)
	}
	if end := <-ended; end.State != job.Completed {
		t.Errorf("%+v", end)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.said) == 0 || !strings.Contains(s.said[0], "does not answer") {
		t.Errorf("%q", s.said)
	}
}
