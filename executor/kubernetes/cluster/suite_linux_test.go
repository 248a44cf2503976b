package cluster_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/job/jobtest"
	"github.com/benchgraph/benchgraph/executor/kubernetes"
	"github.com/benchgraph/benchgraph/executor/kubernetes/cluster"
	"github.com/benchgraph/benchgraph/executor/kubernetes/kubetest"
)

// site is a namespace of a cluster and a client of it.
type site struct {
	*kubetest.Cluster
	t         *testing.T
	namespace string
	client    *cluster.Cluster

	mu   sync.Mutex
	said []string // by the client
}

// newSite makes a namespace. The kubeconfig is in the environment of the process, and the same for all tests.
func newSite(t *testing.T, c *kubetest.Cluster, asks kubernetes.Asks) *site {
	t.Helper()
	s := &site{Cluster: c, t: t, namespace: c.Namespace()}
	if asks.Namespace = s.namespace; asks.Image == "" {
		asks.Image = kubetest.Image
	}
	s.client = s.open(asks)
	return s
}

func (s *site) open(asks kubernetes.Asks) *cluster.Cluster {
	s.t.Helper()
	grace := 200 * time.Millisecond
	if s.Real() {
		grace = 2 * time.Second
	}
	c, err := cluster.Open(s.t.Context(), cluster.Options{Asks: asks, Every: 100 * time.Millisecond,
		Grace: grace, Told: func(message string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.said = append(s.said, message)
		}})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *site) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.said)
}

func (s *site) job(name, script string) job.Job {
	return job.Job{Key: "key." + name + ":12345678", Name: "benchgraph trial[\"" + name + "\"]", Script: script,
		Request: []byte("request of " + name)}
}

// jobs are the Jobs of the namespace.
func (s *site) jobs() []batchv1.Job {
	s.t.Helper()
	list := &batchv1.JobList{}
	if err := s.Batch.Get().Namespace(s.namespace).Resource("jobs").Do(s.t.Context()).Into(list); err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

func (s *site) pods() []corev1.Pod {
	s.t.Helper()
	list := &corev1.PodList{}
	if err := s.Core.Get().Namespace(s.namespace).Resource("pods").Do(s.t.Context()).Into(list); err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

// pod waits for the Pod of a job.
func (s *site) pod(id job.ID) *corev1.Pod {
	s.t.Helper()
	_, uid, _ := strings.Cut(id.Name(), ".")
	for {
		for _, p := range s.pods() {
			if strings.HasPrefix(string(p.OwnerReferences[0].UID), uid) {
				return &p
			}
		}
		select {
		case <-s.t.Context().Done():
			s.t.Fatal(s.t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// patch changes the status of the Pod of a job.
func (s *site) patch(id job.ID, status string) {
	s.t.Helper()
	p := s.pod(id)
	err := s.Core.Patch(types.StrategicMergePatchType).Namespace(s.namespace).Resource("pods").Name(p.Name).
		SubResource("status").Body([]byte(`{"status":` + status + `}`)).Do(s.t.Context()).Error()
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestKubernetes has one API server for all of its parts.
func TestKubernetes(t *testing.T) {
	c := kubetest.Start(t)
	t.Setenv("KUBECONFIG", c.Kubeconfig(t.TempDir(), "admin", "default"))
	parts := map[string]func(*testing.T, *kubetest.Cluster){
		"contract": contract, "secrets": secrets, "what hinders a pod": hinders, "refused": refused, "shape": shape,
		"slow": slow, "rights": rights,
	}
	if c.Real() {
		parts = map[string]func(*testing.T, *kubetest.Cluster){"contract": contract, "secrets": secrets,
			"refused": refused, "rights": rights, "what hinders a pod": reallyHinders, "unattended": unattended}
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t, c)
		})
	}
}

// A Pod has the entries of the Secrets that the executor names. A submitter that was killed after it made the Job
// leaves it without its own Secret: the next one makes that.
func secrets(t *testing.T, c *kubetest.Cluster) {
	s := newSite(t, c, kubernetes.Asks{EnvFrom: []string{"login"}})
	s.Post(s.namespace, "secrets", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"login"},
		"stringData":{"LOGIN":"mine"}}`)
	s.Play(t, s.namespace, "PATH=/usr/bin:/bin")
	s.Hold(s.namespace, true)
	j := s.job("secret", `echo "$LOGIN"`)
	id := jobtest.Submit(t, s.client, j)
	own := s.secretsOf(j.Key)
	if len(own) != 1 {
		t.Fatalf("%q are the Secrets of one Job", own)
	}
	err := s.Core.Delete().Namespace(s.namespace).Resource("secrets").Name(own[0]).Do(t.Context()).Error()
	if err != nil {
		t.Fatal(err)
	}
	if again, found, err := s.client.Submit(t.Context(), j); again != id || !found || err != nil {
		t.Errorf("%s, %v, %v", again, found, err)
	}
	s.Hold(s.namespace, false)
	end, text := jobtest.Wait(t, s.client, id), jobtest.Printed(t, s.client, id)
	if end.State != job.Completed || text != "mine\n" {
		t.Errorf("%+v; the Pod has printed %q", end, text)
	}
}

func refused(t *testing.T, c *kubetest.Cluster) {
	s := newSite(t, c, kubernetes.Asks{})
	refusal := func(client *cluster.Cluster, j job.Job, want string) {
		t.Helper()
		_, _, err := client.Submit(t.Context(), j)
		no, ok := errors.AsType[*job.Refused](err)
		if !ok || !strings.Contains(no.Words, want) || no.Remedy == "" {
			t.Errorf("%v, want %s", err, want)
		}
	}
	refusal(s.open(kubernetes.Asks{Image: "x", Namespace: s.namespace, NodeSelector: map[string]string{"a b": "c"}}),
		s.job("b", "true"), "a b")
	large := s.job("c", "true")
	large.Request = make([]byte, 2<<20)
	_, _ = rand.Read(large.Request) // never fails
	refusal(s.client, large, "there is room for")
	long := s.job("d", strings.Repeat("true\n", 64<<10))
	refusal(s.client, long, "its script has")
	if all := s.jobs(); len(all) != 0 {
		t.Errorf("a Job is left that was refused: %v", all[0].Name)
	}
	for want, asks := range map[string]kubernetes.Asks{
		`no context "elsewhere", but nobody, test`:                            {Context: "elsewhere"},
		`namespaces "nowhere" not found; correct namespace in the executor b`: {Namespace: "nowhere"},
	} {
		_, err := cluster.Open(t.Context(), cluster.Options{Asks: asks})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

// A right that the user lacks is named before the first job. A right that is taken away meanwhile costs only time.
func rights(t *testing.T, c *kubetest.Cluster) {
	s := newSite(t, c, kubernetes.Asks{})
	s.Play(t, s.namespace, "PATH=/usr/bin:/bin")
	all := map[string][]string{"jobs": {"create", "delete", "get", "list"}, "secrets": {"create", "delete"},
		"pods": {"list"}, "pods/log": {"get"}}
	asks := kubernetes.Asks{Context: "nobody", Namespace: s.namespace, Image: kubetest.Image}
	refusal := func(want string) {
		t.Helper()
		for { // the API server learns of a role after a moment
			_, err := cluster.Open(t.Context(), cluster.Options{Asks: asks})
			said := fmt.Sprint(err)
			if err == nil && want == "" || want != "" && strings.Contains(said, "may not "+want+" in") {
				return
			}
			if t.Context().Err() != nil {
				t.Fatalf("%v, want %s", err, want)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	without := func(resource, verb string) map[string][]string {
		some := maps.Clone(all)
		some[resource] = slices.DeleteFunc(slices.Clone(all[resource]), func(v string) bool { return v == verb })
		return some
	}
	for resource, verbs := range all {
		for _, verb := range verbs {
			s.Role(s.namespace, without(resource, verb))
			refusal(verb + " " + resource)
		}
	}
	s.Role(s.namespace, all)
	refusal("")
	client := s.open(asks)
	j := s.job("rights", "echo done")
	s.Hold(s.namespace, true)
	id := jobtest.Submit(t, client, j)
	ended := make(chan job.End)
	go func() { ended <- jobtest.Wait(t, client, id) }()
	s.Role(s.namespace, without("pods", "list"))
	for len(s.told()) == 0 && t.Context().Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	s.Hold(s.namespace, false)
	s.Role(s.namespace, all)
	end, text, said := <-ended, jobtest.Printed(t, client, id), s.told()
	if end.State != job.Completed || text != "done\n" || len(said) != 1 || !strings.Contains(said[0], "lacks a right") {
		t.Errorf("%+v, printed %q, told %q", end, text, said)
	}
}
