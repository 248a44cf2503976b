package cluster_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/benchgraph/benchgraph/executor/job"
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
	asks.Image, asks.Namespace = kubetest.Image, s.namespace
	s.client = s.open(asks)
	return s
}

func (s *site) open(asks kubernetes.Asks) *cluster.Cluster {
	s.t.Helper()
	c, err := cluster.Open(s.t.Context(), cluster.Options{Asks: asks, Every: 100 * time.Millisecond,
		Grace: 200 * time.Millisecond, Told: func(message string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.said = append(s.said, message)
		}})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *site) job(name, script string) job.Job {
	return job.Job{Key: "key." + name + ":12345678", Name: "benchgraph trial[\"" + name + "\"]", Script: script,
		Request: []byte("request of " + name)}
}

func (s *site) submit(j job.Job) job.ID {
	s.t.Helper()
	id, found, err := s.client.Submit(s.t.Context(), j)
	if err != nil || found {
		s.t.Fatalf("%s: %v, found: %v", j.Name, err, found)
	}
	return id
}

func (s *site) wait(id job.ID) job.End {
	s.t.Helper()
	end, err := s.client.Wait(s.t.Context(), id, func(st job.Status) { s.t.Logf("job %s: %+v", id, st) })
	if err != nil {
		s.t.Fatal(err)
	}
	return end
}

// reach waits until a job has a state.
func (s *site) reach(id job.ID, state job.State) job.Status {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	var last job.Status
	end, err := s.client.Wait(ctx, id, func(st job.Status) {
		if last = st; st.State == state {
			cancel()
		}
	})
	if last.State != state {
		s.t.Fatalf("job %s did not become %s: %+v, %+v, %v", id, state, last, end, err)
	}
	return last
}

func (s *site) log(id job.ID) string {
	s.t.Helper()
	var text strings.Builder
	if err := s.client.Log(s.t.Context(), id, &text); err != nil {
		s.t.Fatal(err)
	}
	return text.String()
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

// pod waits for the Pod of the namespace.
func (s *site) pod() *corev1.Pod {
	s.t.Helper()
	for {
		if all := s.pods(); len(all) > 0 {
			return &all[0]
		}
		select {
		case <-s.t.Context().Done():
			s.t.Fatal(s.t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// patch changes the status of the Pod of the namespace.
func (s *site) patch(status string) {
	s.t.Helper()
	p := s.pod()
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
	t.Run("parts", func(t *testing.T) {
		for name, part := range map[string]func(*testing.T, *kubetest.Cluster){
			"jobs end": jobsEnd, "one key, one job": oneKey, "cancel": cancel, "a job after another": after,
			"secrets": secrets, "request": request, "what ends a pod": ends, "what hinders a pod": hinders,
			"refused": refused,
			"deleted": deleted, "suspended": suspended, "shape": shape,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				part(t, c)
			})
		}
	})
	t.Run("away", func(t *testing.T) { away(t, c) })
}

func jobsEnd(t *testing.T, c *kubetest.Cluster) {
	s := newSite(t, c, kubernetes.Asks{})
	s.Play(t, s.namespace, "PATH=/usr/bin:/bin")
	for name, script := range map[string]string{
		"0": `cat "$BENCHGRAPH_REQUEST"; echo " of $BENCHGRAPH_JOB"`, "3": "exit 3", "signal": "kill -KILL $$",
		"hostile": `printf 'a\033[31mb\rc\000d\n'`,
	} {
		id := s.submit(s.job(name, script))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := s.wait(id)
			if end.Node == "" || end.Submitted.IsZero() || end.Started.IsZero() {
				t.Errorf("%+v", end)
			}
			end.Status = job.Status{State: end.State}
			want := map[string]job.End{"3": {Code: 3}, "signal": {Code: 137, Signal: 9}}[name]
			if want.State = job.Failed; want.Code == 0 {
				want.State = job.Completed
			}
			if end != want {
				t.Errorf("%+v, want %+v", end, want)
			}
			said := map[string]string{"0": "request of 0 of " + id.Name() + "\n",
				"hostile": "a\033[31mb\rc\000d\n"}[name]
			if text := s.log(id); text != said {
				t.Errorf("the log is %q", text)
			}
		})
	}
}

// Two who submit a job of one key at once get the same Job.
func oneKey(t *testing.T, c *kubetest.Cluster) {
	s := newSite(t, c, kubernetes.Asks{})
	var wait sync.WaitGroup
	ids, founds := make([]job.ID, 8), make([]bool, 8)
	for i := range ids {
		wait.Go(func() {
			other := s.client
			if i%2 == 0 {
				other = s.open(kubernetes.Asks{Image: kubetest.Image, Namespace: s.namespace})
			}
			var err error
			if ids[i], founds[i], err = other.Submit(t.Context(), s.job("one", "true")); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	made := 0
	for i := range ids {
		if !founds[i] {
			made++
		}
		if ids[i] != ids[0] {
			t.Errorf("%s and %s", ids[i], ids[0])
		}
	}
	if all := s.jobs(); made != 1 || len(all) != 1 {
		t.Errorf("%d submissions made %d Jobs", made, len(all))
	}
	if id, found, err := s.client.Find(t.Context(), "key.one:12345678"); id != ids[0] || !found || err != nil {
		t.Errorf("%s, %v, %v", id, found, err)
	}
	if _, found, err := s.client.Find(t.Context(), "key.two:12345678"); found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}

func cancel(t *testing.T, c *kubetest.Cluster) {
	s := newSite(t, c, kubernetes.Asks{})
	s.Play(t, s.namespace, "PATH=/usr/bin:/bin")
	id := s.submit(s.job("long", "sleep 600"))
	if st := s.reach(id, job.Running); st.Node == "" {
		t.Errorf("%+v", st)
	}
	if err := s.client.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if pods := s.pods(); len(s.jobs())+len(pods) != 0 {
		t.Errorf("left: %v", pods)
	}
	if err := s.client.Cancel(t.Context(), id); err != nil { // of one that is gone
		t.Error(err)
	}
}

// A Job that has ended makes room for another of its key, which is another job.
func after(t *testing.T, c *kubetest.Cluster) {
	s := newSite(t, c, kubernetes.Asks{})
	s.Play(t, s.namespace, "PATH=/usr/bin:/bin")
	first := s.submit(s.job("again", "exit 1"))
	s.wait(first)
	second := s.submit(s.job("again", "exit 0"))
	if first == second {
		t.Errorf("both jobs are %s", first)
	}
	if end := s.wait(second); end.State != job.Completed {
		t.Errorf("%+v", end)
	}
	if end := s.wait(first); !end.Lost {
		t.Errorf("the first job is gone, and its end is %+v", end)
	}
}

// Requests and variables are in a Secret that only the Job's Pod needs, and nowhere else; it goes with the Job.
func secrets(t *testing.T, c *kubetest.Cluster) {
	s := newSite(t, c, kubernetes.Asks{EnvFrom: []string{"login"}})
	s.Post(s.namespace, "secrets", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"login"},
		"stringData":{"LOGIN":"mine"}}`)
	s.Play(t, s.namespace, "PATH=/usr/bin:/bin")
	j := s.job("secret", `echo "$LOGIN $TOKEN $(cat "$BENCHGRAPH_REQUEST" | wc -c)"; [ -z "$BENCHGRAPH_JOB_UID" ]`)
	j.Request, j.Environ = []byte("hunter2-request"), []string{"TOKEN=hunter2-token"}
	id := s.submit(j)
	for _, object := range []any{s.jobs(), s.pods()} {
		if text := fmt.Sprintf("%+v", object); strings.Contains(text, "hunter2") {
			t.Error("a secret is in a Job or Pod")
		}
	}
	owned := func() int {
		list := &corev1.SecretList{}
		if err := s.Core.Get().Namespace(s.namespace).Resource("secrets").Do(t.Context()).Into(list); err != nil {
			t.Fatal(err)
		}
		list.Items = slices.DeleteFunc(list.Items, func(x corev1.Secret) bool { return len(x.OwnerReferences) == 0 })
		return len(list.Items)
	}
	if n := owned(); n != 1 {
		t.Errorf("%d Secrets of one Job", n)
	}
	if end := s.wait(id); end.State != job.Completed {
		t.Errorf("%+v", end)
	}
	if text := s.log(id); text != "mine hunter2-token 15\n" {
		t.Errorf("the Pod has printed %q", text)
	}
	if n := owned(); n != 0 {
		t.Errorf("%d Secrets are left of a Job that has ended", n)
	}
	// A submitter that was killed after it made the Job leaves it without its Secret: the next one makes that.
	id = s.submit(s.job("killed", "true"))
	_ = s.Core.Delete().Namespace(s.namespace).Resource("secrets").
		Name(s.secretOf("killed")).Do(t.Context()).Error()
	if again, found, err := s.client.Submit(t.Context(), s.job("killed", "true")); again != id || !found || err != nil {
		t.Errorf("%s, %v, %v", again, found, err)
	}
	if end := s.wait(id); end.State != job.Completed {
		t.Errorf("%+v", end)
	}
}

// request is one of several parts. What replaces the shell of a job has neither the parts nor the script in its
// environment, and when it has removed the file, the Pod has no other.
func request(t *testing.T, c *kubetest.Cluster) {
	s := newSite(t, c, kubernetes.Asks{})
	s.Play(t, s.namespace, "PATH=/usr/bin:/bin")
	j := s.job("request", `ls -l "$BENCHGRAPH_REQUEST"; ls -ld "${BENCHGRAPH_REQUEST%/*}"
exec sh -c 'sha256sum <"$BENCHGRAPH_REQUEST"; rm "$BENCHGRAPH_REQUEST"
tr "\0" "\n" </proc/$$/environ | cut -d= -f1 | sort
find /dev/shm -type f; grep -c /dev/shm /proc/mounts; echo end'
`)
	j.Request = make([]byte, 200<<10)
	_, _ = rand.Read(j.Request) // never fails
	id := s.submit(j)
	pod := s.pod()
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil {
			t.Errorf("a Secret is mounted: %+v", v)
		}
	}
	if end := s.wait(id); end.State != job.Completed {
		t.Errorf("%+v", end)
	}
	text := s.log(id)
	want := regexp.MustCompile(fmt.Sprintf(`^-rw------- .*\ndrwx------ .*\n%x  -\n`+
		`BENCHGRAPH_JOB\nBENCHGRAPH_REQUEST\nPATH\nPWD\n[0-9]+\nend\n$`, sha256.Sum256(j.Request)))
	if !want.MatchString(text) {
		t.Errorf("the Pod has printed %q", text)
	}
}

// secretOf is the name of the Secret that the Pod of a job wants.
func (s *site) secretOf(name string) string {
	for _, j := range s.jobs() {
		if j.Annotations["benchgraph/key"] == "key."+name+":12345678" {
			from := j.Spec.Template.Spec.Containers[0].EnvFrom
			return from[len(from)-1].SecretRef.Name
		}
	}
	return ""
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
		`no context "elsewhere", but test`:                                    {Context: "elsewhere"},
		`namespaces "nowhere" not found; correct namespace in the executor b`: {Namespace: "nowhere"},
	} {
		_, err := cluster.Open(t.Context(), cluster.Options{Asks: asks})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
	if _, _, err := s.client.Submit(t.Context(), job.Job{Key: "a b"}); err == nil {
		t.Error("a key with a space")
	}
}

// deleted is a Job that somebody deletes.
func deleted(t *testing.T, c *kubetest.Cluster) {
	s := newSite(t, c, kubernetes.Asks{})
	s.Play(t, s.namespace, "PATH=/usr/bin:/bin")
	id := s.submit(s.job("gone", "sleep 600"))
	s.reach(id, job.Running)
	background := metav1.DeletePropagationBackground
	if err := s.Batch.Delete().Namespace(s.namespace).Resource("jobs").Name(s.jobs()[0].Name).
		Body(&metav1.DeleteOptions{PropagationPolicy: &background}).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	if end := s.wait(id); !end.Lost {
		t.Errorf("%+v", end)
	}
}

// suspended is a Job that Kueue takes from its node for another one.
func suspended(t *testing.T, c *kubetest.Cluster) {
	s := newSite(t, c, kubernetes.Asks{Queue: "bench"})
	s.Play(t, s.namespace, "PATH=/usr/bin:/bin")
	id := s.submit(s.job("kueue", "sleep 600"))
	j := s.jobs()[0]
	if j.Labels["kueue.x-k8s.io/queue-name"] != "bench" {
		t.Errorf("labels %v", j.Labels)
	}
	suspend := func(to string) {
		t.Helper()
		if err := s.Batch.Patch(types.MergePatchType).Namespace(s.namespace).Resource("jobs").Name(j.Name).
			Body([]byte(`{"spec":{"suspend":` + to + `}}`)).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	s.reach(id, job.Running)
	done := make(chan job.End)
	running := make(chan bool, 8)
	go func() {
		end, err := s.client.Wait(t.Context(), id, func(st job.Status) { running <- st.State == job.Running })
		if err != nil {
			t.Error(err)
		}
		done <- end
	}()
	<-running
	suspend("true")
	if end := <-done; end.State != "PREEMPTED" || len(s.jobs()) != 0 {
		t.Errorf("%+v, and %d Jobs are left", end, len(s.jobs()))
	}
}
