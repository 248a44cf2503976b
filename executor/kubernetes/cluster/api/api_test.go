package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/benchgraph/benchgraph/executor/kubernetes/kubetest"
)

// A mistake that would let jobs wait for ever, or lose them, is known before the first job.
func TestCheck(t *testing.T) {
	everything := func(authorizationv1.ResourceAttributes) bool { return true }
	for name, part := range map[string]struct {
		may    func(authorizationv1.ResourceAttributes) bool // nil: the API server does not tell
		listed int                                           // status of the list of Jobs
		kueue  bool
		queue  string
		want   string // "": no mistake
	}{
		"everything is there": {may: everything, listed: 200},
		"no reviews":          {listed: 200},
		"no reviews, and no right": {listed: 403,
			want: "no jobs for you; have the user given that right"},
		"an unknown user": {listed: 401, want: "does not know the user of the kubeconfig: no jobs for you; log in"},
		"no API server":   {listed: 404, want: "does not answer as one"},
		"without rights": {may: func(authorizationv1.ResourceAttributes) bool { return false }, listed: 403,
			want: "may not create, delete, get, list jobs; list pods; get pods/log; create, delete secrets in the " +
				"namespace bench; have the user given these rights"},
		"without logs": {may: func(r authorizationv1.ResourceAttributes) bool { return r.Subresource != "log" },
			listed: 200, want: "may not get pods/log in the namespace bench"},
		"without new Jobs": {may: func(r authorizationv1.ResourceAttributes) bool {
			return r.Group != "batch" || r.Verb != "create"
		}, listed: 200, want: "may not create jobs in the namespace bench"},
		"a queue":       {may: everything, listed: 200, kueue: true, queue: "there"},
		"no such queue": {may: everything, listed: 200, kueue: true, queue: "none", want: "correct queue"},
		"no Kueue":      {may: everything, listed: 200, queue: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			kubetest.Answer(t, "token", "bench", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch path := r.URL.Path; {
				case path == "/apis/batch/v1/namespaces/bench/jobs" && part.listed == 200:
					fmt.Fprint(w, `{"kind":"JobList","apiVersion":"batch/v1"}`)
				case path == "/apis/batch/v1/namespaces/bench/jobs":
					reasons := map[int]string{401: "Unauthorized", 403: "Forbidden", 404: "NotFound"}
					kubetest.Refuse(w, part.listed, reasons[part.listed], "no jobs for you")
				case strings.HasSuffix(path, "/selfsubjectaccessreviews") && part.may != nil:
					var review authorizationv1.SelfSubjectAccessReview
					if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
						t.Error(err)
					}
					review.Status.Allowed = part.may(*review.Spec.ResourceAttributes)
					_ = json.NewEncoder(w).Encode(review)
				case path == "/apis/kueue.x-k8s.io" && part.kueue:
					fmt.Fprint(w, `{"preferredVersion":{"groupVersion":"kueue.x-k8s.io/v1beta1"}}`)
				case path == "/apis/kueue.x-k8s.io/v1beta1/namespaces/bench/localqueues/there",
					path == "/api/v1/namespaces/bench":
					fmt.Fprint(w, `{}`)
				default:
					http.NotFound(w, r)
				}
			})
			s, err := New("", "")
			if err != nil {
				t.Fatal(err)
			}
			err = s.Check(t.Context(), part.queue)
			if (err == nil) != (part.want == "") || err != nil && !strings.Contains(err.Error(), part.want) {
				t.Errorf("%v, want %q", err, part.want)
			}
		})
	}
}

// After a login, the same context of the kubeconfig counts, even if another one is the current one by then.
func TestLogin(t *testing.T) {
	var tokens []string
	path := kubetest.Answer(t, "first", "bench", func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{}`)
	})
	s, err := New("", "")
	if err != nil {
		t.Fatal(err)
	}
	ask := func() {
		if err := s.To("GET", "jobs").Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile(path, []byte(strings.NewReplacer("first", "second", `"current-context":"c"`,
		`"current-context":"other"`).Replace(string(text))), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s.Login()
	ask()
	if want := []string{"Bearer first", "Bearer second"}; strings.Join(tokens, ",") != strings.Join(want, ",") {
		t.Errorf("%q, want %q", tokens, want)
	}
}
