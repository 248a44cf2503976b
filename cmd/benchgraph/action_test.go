package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestAction runs the commands of action.yml, in a job on a pull request with the environment of GitHub. GitHub itself
// is played: no machine here is one of its runners.
func TestAction(t *testing.T) {
	params := scriptParams("testdata/action")
	setup := params.Setup
	params.Setup = func(env *testscript.Env) error {
		action, err := filepath.Abs(filepath.Join("..", "..", "action"))
		if err != nil {
			return err
		}
		hub := &pullRequest{bodies: map[int]string{7: "LGTM", 8: "<!-- another tool -->"},
			file: filepath.Join(env.WorkDir, "comments")}
		server := httptest.NewServer(hub)
		env.Defer(server.Close)
		for name, value := range map[string]string{
			"ACTION": action, "GITHUB_ACTION_PATH": filepath.Dir(action),
			"RUNNER_TEMP":    filepath.Join(env.WorkDir, "tmp"),
			"GITHUB_API_URL": server.URL, "GITHUB_REPOSITORY": "o/r",
			"GITHUB_EVENT_PATH":   filepath.Join(env.WorkDir, "event.json"),
			"GITHUB_OUTPUT":       filepath.Join(env.WorkDir, "output"),
			"GITHUB_STEP_SUMMARY": filepath.Join(env.WorkDir, "summary"),
			"DIRECTORY":           ".", "VARIABLES": "", "ARGUMENTS": "", "FAIL_ON": "loss,failed,wrong",
			"STORE":  "~/store",
			"REPORT": filepath.Join(env.WorkDir, "tmp", "benchgraph-report"),
		} {
			env.Setenv(name, value)
		}
		return setup(env)
	}
	testscript.Run(t, params)
}

// pullRequest has the comments of a pull request, and writes them to a file after each change.
type pullRequest struct {
	mu     sync.Mutex
	bodies map[int]string // by ID
	file   string
}

func (p *pullRequest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var sent struct{ Body string }
	id := 0
	switch {
	case r.Header.Get("Authorization") != "Bearer t0ken":
		http.Error(w, "no", http.StatusUnauthorized)
		return
	case r.Method == http.MethodGet && r.URL.Path == "/repos/o/r/issues/12/comments":
		type comment struct {
			ID   int    `json:"id"`
			Body string `json:"body"`
		}
		list := []comment{}
		for id, body := range p.bodies {
			list = append(list, comment{id, body})
		}
		_ = json.NewEncoder(w).Encode(list)
		return
	case r.Method == http.MethodPost && r.URL.Path == "/repos/o/r/issues/12/comments":
		id = 100 + len(p.bodies)
	case r.Method == http.MethodPatch:
		if _, err := fmt.Sscanf(r.URL.Path, "/repos/o/r/issues/comments/%d", &id); err != nil || p.bodies[id] == "" {
			http.NotFound(w, r)
			return
		}
	default:
		http.NotFound(w, r)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || sent.Body == "" {
		http.Error(w, "no body", http.StatusUnprocessableEntity)
		return
	}
	p.bodies[id] = sent.Body
	var all strings.Builder
	for id, body := range p.bodies {
		fmt.Fprintf(&all, "comment %d: %s\n", id, body)
	}
	if err := os.WriteFile(p.file, []byte(all.String()), 0o644); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
	w.WriteHeader(http.StatusCreated)
}
