package service_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/modal"
	"github.com/benchgraph/benchgraph/executor/modal/modaltest"
	"github.com/benchgraph/benchgraph/executor/modal/service"
)

const image = "registry.example/bench@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// site is an app of a Modal.
type site struct {
	*modaltest.Server // nil: Modal itself
	*service.Service
	asks modal.Asks

	mu   sync.Mutex
	said []string // by the service
}

// opening keeps tests apart that have other environments.
var opening sync.Mutex

// open opens a service in an environment.
func open(t *testing.T, environ []string, asks modal.Asks, told func(string)) (*service.Service, error) {
	t.Helper()
	opening.Lock()
	defer opening.Unlock()
	for _, name := range []string{"MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET", "MODAL_CONFIG_PATH", "MODAL_SERVER_URL"} {
		if before, ok := os.LookupEnv(name); ok {
			defer os.Setenv(name, before)
		} else {
			defer os.Unsetenv(name)
		}
	}
	for _, v := range append(environ, "MODAL_SANDBOX_V2=0") {
		name, value, _ := strings.Cut(v, "=")
		if err := os.Setenv(name, value); err != nil {
			t.Fatal(err)
		}
	}
	return service.Open(t.Context(), service.Options{Asks: asks, Every: 50 * time.Millisecond, Told: told})
}

// newSite is a site with a server of its own. Change may change what all sandboxes have.
func newSite(t *testing.T, change func(*modaltest.Server, *modal.Asks)) *site {
	t.Helper()
	s := &site{Server: modaltest.Start(t)}
	asks := modal.Asks{App: "bench", Image: image, GPU: "H100"}
	if change != nil {
		change(s.Server, &asks)
	}
	s.asks = asks
	s.Service = s.client(t)
	return s
}

// client is a service that knows nothing of the others.
func (s *site) client(t *testing.T) *service.Service {
	t.Helper()
	c, err := open(t, s.Environ(), s.asks, func(text string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.said = append(s.said, text)
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *site) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said
}

func (s *site) job(name, script string) job.Job {
	return job.Job{Key: "key." + name, Name: "trial[\"" + name + "\"]", Script: script,
		Environ: []string{"PATH=/usr/bin:/bin"}}
}

// sandbox is that of a job, once it runs.
func (s *site) sandbox(t *testing.T, id job.ID) *modaltest.Sandbox {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	for ctx.Err() == nil {
		for _, sb := range s.Sandboxes() {
			if sb.ID == id.Name() && !sb.Started().IsZero() {
				return sb
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s does not run", id)
	return nil
}
