package cluster_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/job/jobtest"
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

// waiting is the status of a Pod whose container is not made.
func waiting(reason, message string) string {
	return `{"phase":"Pending","containerStatuses":[{"name":"job","image":"x","imageID":"","ready":false,
		"restartCount":0,"state":{"waiting":{"reason":"` + reason + `","message":"` + message + `"}}}]}`
}

// on asks for nodes of a kind.
func on(kind string) kubernetes.Asks {
	return kubernetes.Asks{NodeSelector: map[string]string{"kind": kind}}
}

// A Job that can never run is cancelled after a while, with the reason; Wait waits for one that may still run.
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
			id := jobtest.Submit(t, s.client, j)
			if part.status != "" {
				s.patch(id, part.status)
			}
			if part.held == "" {
				st := jobtest.Reach(t, s.client, id, job.Pending)
				time.Sleep(2 * time.Second) // 10 times the grace
				if all := s.jobs(); len(all) != 1 || all[0].DeletionTimestamp != nil {
					t.Errorf("the Job that may yet run is gone: %+v", st)
				}
				return
			}
			if end := jobtest.Wait(t, s.client, id); !strings.Contains(end.Held, part.held) || len(s.jobs()) != 0 {
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
		if said := s.told(); len(said) != 1 || !strings.Contains(said[0], "takes no more Jobs for now") {
			t.Errorf("%q", said)
		}
	})
}

// A Pod that waited for a node has a warning of that, and then an image that takes long. A limit that passes meanwhile
// is no end of what is measured.
func slow(t *testing.T, c *kubetest.Cluster) {
	s := newSite(t, c, kubernetes.Asks{})
	s.Nodes()
	s.Control(t, s.namespace)
	id := jobtest.Submit(t, s.client, s.job("slow", "true"))
	p := s.pod(id)
	event := func(kind, reason, message, at string) {
		s.Post(s.namespace, "events", `{"apiVersion":"v1","kind":"Event","metadata":{"generateName":"e-"},
			"type":"`+kind+`","reason":"`+reason+`","message":"`+message+`","lastTimestamp":"`+at+`",
			"involvedObject":{"kind":"Pod","namespace":"`+s.namespace+`",
			"name":"`+p.Name+`","uid":"`+string(p.UID)+`"}}`)
	}
	event("Warning", "FailedScheduling", "0/1 nodes are available", "2026-01-01T00:00:00Z")
	event("Normal", "Pulling", "Pulling image", "2026-01-01T00:00:00Z")
	s.Post(s.namespace, "pods/"+p.Name+"/binding", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"`+p.Name+
		`"},"target":{"kind":"Node","name":"`+kubetest.Node+`"}}`)
	s.patch(id, waiting("ContainerCreating", ""))
	done := make(chan job.End)
	go func() { done <- jobtest.Wait(t, s.client, id) }()
	select {
	case end := <-done:
		t.Fatalf("it may yet run: %+v", end)
	case <-time.After(5 * time.Second): // 25 times the grace
	}
	s.patch(id, strings.Replace(terminated("137", "ContainerStatusUnknown"), "{", `{"reason":"DeadlineExceeded",
		"message":"longer than the specified deadline",`, 1))
	if end := <-done; end.State != "NODE_FAIL" || !strings.Contains(end.Reason, "made: longer") {
		t.Errorf("%+v", end)
	}
}

// shape looks at what is asked for.
func shape(t *testing.T, c *kubetest.Cluster) {
	s := newSite(t, c, kubernetes.Asks{NodeSelector: map[string]string{"gpu": "h100"},
		Volumes:     map[string]string{"/models": "models"},
		Tolerations: []string{"nvidia.com/gpu:NoSchedule", "for=bench"}, PullSecret: "registry",
		ServiceAccount: "runner", Queue: "bench"})
	s.Control(t, s.namespace)
	j := s.job("shape", "true")
	j.GPUs, j.CPUs, j.Memory, j.Time, j.Exclusive = 2, 8, 1<<30, 90*time.Minute, true
	j.Avoids = []string{"full", "also-full"}
	p := s.pod(jobtest.Submit(t, s.client, j)).Spec
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
	others := p.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if len(others) != 1 || len(others[0].Preference.MatchFields) != 2 ||
		others[0].Preference.MatchFields[1].Values[0] != "full" {
		t.Errorf("nodes that are avoided: %+v", others)
	}
	claim, shm := false, false
	for _, v := range p.Volumes {
		claim = claim || v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "models"
		shm = shm || v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory
		if v.Secret != nil { // what is measured could read it
			t.Errorf("a Secret is mounted: %+v", v)
		}
	}
	if !claim || !shm || main.VolumeMounts[0].MountPath != "/dev/shm" {
		t.Errorf("volumes %+v, mounted %+v", p.Volumes, main.VolumeMounts)
	}
	made := s.jobs()[0]
	if *made.Spec.BackoffLimit != 0 || *made.Spec.TTLSecondsAfterFinished != 86400 ||
		made.Labels["kueue.x-k8s.io/queue-name"] != "bench" {
		t.Errorf("%+v", made)
	}
}
