package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/kubernetes"
	"github.com/benchgraph/benchgraph/executor/kubernetes/kubetest"
)

// serve returns a client of an API server that answers as handler, and the messages to its user.
func serve(t *testing.T, handler http.HandlerFunc) (c *Cluster, told func() string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	kubetest.Answer(t, "token", "bench", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") || r.URL.Query().Get("limit") == "1" ||
			r.URL.Path == "/api/v1/namespaces/bench" {
			fmt.Fprint(w, `{"status":{"allowed":true}}`)
			return
		}
		handler(w, r)
	})
	c, err := Open(t.Context(), Options{Asks: kubernetes.Asks{Image: "x"}, Every: time.Millisecond,
		Told: func(message string) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, message)
		}})
	if err != nil {
		t.Fatal(err)
	}
	return c, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(all, "\n")
	}
}

// one is the list of one Job, which has ended, and one Pod.
func one(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/pods") {
		fmt.Fprint(w, `{"items":[{"metadata":{"name":"p","ownerReferences":[{"kind":"Job","uid":"u-1"}]},
			"status":{"phase":"Succeeded"}}]}`)
		return
	}
	fmt.Fprint(w, `{"items":[{"metadata":{"name":"j","uid":"u-1","annotations":{"benchgraph/key":"k"}},
		"status":{"conditions":[{"type":"Complete","status":"True"}]}}]}`)
}

// While a wait gets no answer, the user is told why and what to do, once, and the wait goes on.
func TestTroublesOfAWait(t *testing.T) {
	for want, refuse := range map[string]func(w http.ResponseWriter){
		"log in again, then": func(w http.ResponseWriter) { kubetest.Refuse(w, 401, "Unauthorized", "expired") },
		"have the user given it": func(w http.ResponseWriter) {
			kubetest.Refuse(w, 403, "Forbidden", `User "me" cannot list pods`)
		},
		"cannot do what it is asked": func(w http.ResponseWriter) { kubetest.Refuse(w, 500, "InternalError", "etcd") },
	} {
		t.Run(want, func(t *testing.T) {
			var asked atomic.Int32
			c, told := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) <= 5 {
					refuse(w)
					return
				}
				one(w, r)
			})
			end, err := c.Wait(t.Context(), "j.u/k", nil)
			if err != nil || end.State != job.Completed {
				t.Errorf("%+v, %v", end, err)
			}
			if said := told(); !strings.Contains(said, want) || strings.Contains(said, "\n") {
				t.Errorf("told %q, want %q", said, want)
			}
		})
	}
}

// A login helper that fails is no API server that does not answer.
func TestTroubleOfALoginHelper(t *testing.T) {
	c, told := serve(t, one)
	c.has(&url.Error{Op: "Get", URL: "https://x", Err: errors.New("getting credentials: exec: exit code 1")})
	if said := told(); !strings.Contains(said, "log in again, then") || !strings.Contains(said, "exit code 1") {
		t.Errorf("told %q", said)
	}
}

// The output of a Pod goes on where the connection broke. An API server that brings nothing more is asked a few times,
// and its node may have removed the beginning meanwhile.
func TestLogAfterABreak(t *testing.T) {
	text := strings.Repeat("one line\n", 10_000)
	for name, part := range map[string]struct {
		parts []string // of the answers that break off
		whole string   // the answer after these; "": there is none
		got   int
		err   string
	}{
		"a break":            {parts: []string{text[:20_001], "", text[:40_002]}, whole: text, got: len(text)},
		"no end":             {parts: []string{text[:20_001], text[:10]}, got: 20_001, err: "EOF"},
		"a log that is gone": {parts: []string{text[:20_001]}, whole: text[:300], got: 20_001, err: "is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				n := int(asked.Add(1)) - 1
				switch {
				case !strings.HasSuffix(r.URL.Path, "/log"):
					asked.Add(-1)
					one(w, r)
				case n >= len(part.parts) && part.whole != "":
					fmt.Fprint(w, part.whole)
				default:
					fmt.Fprint(w, part.parts[min(n, len(part.parts)-1)])
					_ = http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				}
			})
			var got strings.Builder
			err := c.Log(t.Context(), "j.u/k", &got)
			if got.String() != text[:part.got] || (err == nil) != (part.err == "") ||
				err != nil && !strings.Contains(err.Error(), part.err) {
				t.Errorf("%d bytes of %d, %v", got.Len(), part.got, err)
			}
		})
	}
}

// A Job that stays while it is being deleted keeps the next one waiting, and the user is told.
func TestAJobThatStays(t *testing.T) {
	var asked atomic.Int32
	c, told := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) <= 2*usual {
			fmt.Fprint(w, `{"metadata":{"name":"j","uid":"u-1","deletionTimestamp":"2026-01-01T00:00:00Z",
				"annotations":{"benchgraph/key":"k"}}}`)
			return
		}
		fmt.Fprint(w, `{"metadata":{"name":"j","uid":"u-2","annotations":{"benchgraph/key":"k"}}}`)
	})
	id, _, err := c.Submit(t.Context(), job.Job{Key: "k", Name: "n", Script: "true"})
	if err != nil || id != "j.u/k" || !strings.Contains(told(), "still being deleted") {
		t.Errorf("%s, %v, told %q", id, err, told())
	}
}

// The Secret of a Job goes when its container runs, which needs it no more. Kueue may start a Job again.
func TestSecretOfARunningJob(t *testing.T) {
	for queue, want := range map[string]int32{"": 1, "kueue": 0} {
		var deleted atomic.Int32
		c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch path := r.URL.Path; {
			case r.Method == http.MethodDelete && path == "/api/v1/namespaces/bench/secrets/j-mark":
				deleted.Add(1)
				fmt.Fprint(w, `{}`)
			case strings.HasSuffix(path, "/pods"):
				fmt.Fprint(w, `{"items":[{"metadata":{"name":"p","ownerReferences":[{"kind":"Job","uid":"u-1"}]},
					"status":{"phase":"Running","containerStatuses":[{"name":"job","state":{"running":{}}}]}}]}`)
			default:
				fmt.Fprint(w, `{"items":[{"metadata":{"name":"j","uid":"u-1",
					"annotations":{"benchgraph/key":"k","benchgraph/submission":"mark"}}}]}`)
			}
		})
		c.o.Queue = queue
		l, err := c.jobs.Look(t.Context())
		f := &follower{c: c, id: "j.u/k"}
		for range 3 {
			if _, over, failed := f.judge(t.Context(), l); over || err != nil || failed != nil {
				t.Errorf("over: %v, %v, %v", over, err, failed)
			}
		}
		if deleted.Load() != want {
			t.Errorf("queue %q: %d Secrets are deleted, want %d", queue, deleted.Load(), want)
		}
	}
}

// A refusal has a remedy that fits it.
func TestRemedies(t *testing.T) {
	for want, part := range map[string]struct {
		code          int
		reason, words string
	}{
		"rules of the namespace": {422, "Invalid", `"x" is forbidden: ValidatingAdmissionPolicy 'p' denied request: y`},
		"the rules of the":       {403, "Forbidden", `admission webhook "w" denied the request: User "x" owes money`},
		"given that right":       {403, "Forbidden", `jobs.batch is forbidden: User "x" cannot create resource "jobs"`},
		"correct the attribute":  {422, "Invalid", `Job.batch "x" is invalid: spec.template.spec.nodeSelector`},
		"correct namespace":      {404, "NotFound", `namespaces "x" not found`},
		"raised": {403, "Forbidden", `jobs.batch "x" is forbidden: exceeded quota: q, requested: cpu=4, used: cpu=0, ` +
			`limited: cpu=2`},
	} {
		c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				kubetest.Refuse(w, part.code, part.reason, part.words)
			} else {
				kubetest.Refuse(w, 404, "NotFound", "no Job")
			}
		})
		_, _, err := c.Submit(t.Context(), job.Job{Key: "k", Name: "n", Script: "true"})
		no, ok := errors.AsType[*job.Refused](err)
		if !ok || no.Words != part.words || !strings.Contains(no.Remedy, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
