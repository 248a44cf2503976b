package cluster_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/job/jobtest"
	"github.com/benchgraph/benchgraph/executor/kubernetes"
	"github.com/benchgraph/benchgraph/executor/kubernetes/kubetest"
)

// registry has no image. While it is busy, it does not answer.
func registry(t *testing.T) (image string, busy *atomic.Bool) {
	t.Helper()
	busy = &atomic.Bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for busy.Load() && r.Context().Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/none:1", busy
}

// Obstacles of a Pod, in the words of a real node.
func reallyHinders(t *testing.T, c *kubetest.Cluster) {
	none, _ := registry(t)
	for name, part := range map[string]struct {
		asks kubernetes.Asks
		gpus int
		held string
	}{
		"no such image": {asks: kubernetes.Asks{Image: none}, held: "not found"},
		"image name":    {asks: kubernetes.Asks{Image: "x y"}, held: "InvalidImageName"},
		"no secret":     {asks: kubernetes.Asks{EnvFrom: []string{"none"}}, held: `secret "none" not found`},
		"no claim": {asks: kubernetes.Asks{Volumes: map[string]string{"/x": "none"}},
			held: `persistentvolumeclaim "none" not found`},
		"no such node": {asks: on("h100"), held: "didn't match Pod's node affinity/selector"},
		"too many":     {gpus: 8, held: "Insufficient nvidia.com/gpu"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, c, part.asks)
			j := s.job("held", "true")
			j.GPUs = part.gpus
			id := jobtest.Submit(t, s.client, j)
			if end := jobtest.Wait(t, s.client, id); !strings.Contains(end.Held, part.held) || len(s.jobs()) != 0 {
				t.Errorf("%+v; %d Jobs are left", end, len(s.jobs()))
			}
		})
	}
	t.Run("out of memory", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, c, kubernetes.Asks{})
		j := s.job("oom", "exec tail /dev/zero")
		j.Memory = 64 << 20
		end := jobtest.Wait(t, s.client, jobtest.Submit(t, s.client, j))
		if end.State != job.OutOfMemory || end.Signal != 9 || end.Reason != "OOMKilled" {
			t.Errorf("%+v", end)
		}
	})
	t.Run("an image that takes long, after a wait for devices", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, c, kubernetes.Asks{})
		image, busy := registry(t)
		busy.Store(true)
		pulls := s.open(kubernetes.Asks{Image: image, Namespace: s.namespace})
		first, second := s.job("first", "sleep 5"), s.job("second", "true")
		first.GPUs, second.GPUs = 4, 4
		jobtest.Reach(t, s.client, jobtest.Submit(t, s.client, first), job.Running)
		id := jobtest.Submit(t, pulls, second)
		done := make(chan job.End)
		go func() { done <- jobtest.Wait(t, pulls, id) }()
		select {
		case end := <-done:
			t.Errorf("it may yet run: %+v", end)
			return
		case <-time.After(50 * time.Second): // 25 times the grace
		}
		busy.Store(false)
		if end := <-done; !strings.Contains(end.Held, "not found") {
			t.Errorf("%+v", end)
		}
	})
	t.Run("a limit that passes before the image is there", func(t *testing.T) {
		t.Parallel()
		image, busy := registry(t)
		busy.Store(true)
		time.AfterFunc(8*time.Second, func() { busy.Store(false) }) // the kubelet looks at the limit after the pull
		s := newSite(t, c, kubernetes.Asks{Image: image})
		j := s.job("late", "true")
		j.Time = 5 * time.Second
		end := jobtest.Wait(t, s.client, jobtest.Submit(t, s.client, j))
		if end.State != "NODE_FAIL" || !strings.Contains(end.Reason, "most of its time was gone") {
			t.Errorf("%+v", end)
		}
	})
	t.Run("more than a quota for ever", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, c, kubernetes.Asks{})
		s.Quota(s.namespace, map[string]string{"requests.nvidia.com/gpu": "2"}, map[string]string{
			"requests.nvidia.com/gpu": "0"})
		j := s.job("quota", "true")
		j.GPUs = 4
		end := jobtest.Wait(t, s.client, jobtest.Submit(t, s.client, j))
		if !strings.Contains(end.Held, "exceeded quota") {
			t.Errorf("%+v", end)
		}
	})
	t.Run("as many Jobs as a quota allows", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, c, kubernetes.Asks{})
		first := jobtest.Submit(t, s.client, s.job("first", "exec sleep 8"))
		s.Quota(s.namespace, map[string]string{"count/jobs.batch": "1"}, map[string]string{"count/jobs.batch": "1"})
		time.AfterFunc(8*time.Second, func() { _ = s.client.Cancel(t.Context(), first) })
		second := jobtest.Submit(t, s.client, s.job("second", "true"))
		if end := jobtest.Wait(t, s.client, second); end.State != job.Completed {
			t.Errorf("%+v", end)
		}
		if said := s.told(); len(said) != 1 || !strings.Contains(said[0], "takes no more Jobs for now") {
			t.Errorf("%q", said)
		}
	})
}

// Jobs whose end nobody awaits are removed after a time, with their Secrets.
func unattended(t *testing.T, c *kubetest.Cluster) {
	s := newSite(t, c, kubernetes.Asks{})
	j := s.job("unattended", "true")
	id := jobtest.Submit(t, s.client, j)
	own := s.secretsOf(j.Key)
	jobtest.Printed(t, s.client, id) // waits until it has run
	err := s.Batch.Patch(types.MergePatchType).Namespace(s.namespace).Resource("jobs").Name(s.named(id).Name).
		Body([]byte(`{"spec":{"ttlSecondsAfterFinished":1}}`)).Do(t.Context()).Error()
	if err != nil || len(own) != 1 {
		t.Fatalf("%v, %q", err, own)
	}
	for s.named(id) != nil || len(s.pods()) > 0 || s.Core.Get().Namespace(s.namespace).Resource("secrets").Name(own[0]).
		Do(t.Context()).Error() == nil {
		time.Sleep(100 * time.Millisecond)
	}
	if end := jobtest.Wait(t, s.client, id); !end.Lost {
		t.Errorf("%+v", end)
	}
}

// TestTroubledNode does to a real node what ends all of its Pods, one after another.
func TestTroubledNode(t *testing.T) {
	if !kubetest.HasNode() {
		t.Skip("only executor/kubernetes/kubetest/run starts a real node")
	}
	c := kubetest.Start(t)
	t.Setenv("KUBECONFIG", c.Kubeconfig(t.TempDir(), "admin", "default"))
	node := func(patch string) {
		t.Helper()
		if err := c.Core.Patch(types.MergePatchType).Resource("nodes").Name(kubetest.Node).Body([]byte(patch)).
			Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	running := func(t *testing.T, script string) (*site, job.ID) {
		s := newSite(t, c, kubernetes.Asks{})
		id := jobtest.Submit(t, s.client, s.job("trouble", script))
		jobtest.Reach(t, s.client, id, job.Running)
		return s, id
	}
	ends := func(t *testing.T, s *site, id job.ID, state job.State, reason string) {
		t.Helper()
		end := jobtest.Wait(t, s.client, id)
		if end.State != state || !strings.Contains(end.Reason, reason) || end.Lost {
			t.Errorf("%+v", end)
		}
	}
	t.Run("taint", func(t *testing.T) {
		s, id := running(t, "exec sleep 600")
		node(`{"spec":{"taints":[{"key":"test","effect":"NoExecute"}]}}`)
		ends(t, s, id, "NODE_FAIL", "taint")
		node(`{"spec":{"taints":null}}`)
	})
	t.Run("cut off", func(t *testing.T) {
		s, id := running(t, "exec sleep 600")
		c.Halt(true)
		defer c.Halt(false)
		if err := s.client.Cancel(t.Context(), id); err != nil {
			t.Error(err)
		}
	})
	t.Run("full disk", func(t *testing.T) {
		s, id := running(t, "head -c 2700000000 /dev/zero >/full; exec sleep 600")
		ends(t, s, id, "PREEMPTED", "low on resource: ephemeral-storage")
	})
}
