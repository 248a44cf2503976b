package service_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/job/jobtest"
	"github.com/benchgraph/benchgraph/executor/modal"
	"github.com/benchgraph/benchgraph/executor/modal/modaltest"
)

func TestASandboxHasWhatTheJobAsksFor(t *testing.T) {
	t.Parallel()
	mount := filepath.Join(t.TempDir(), "models")
	var volume string
	s := newSite(t, func(m *modaltest.Server, a *modal.Asks) {
		m.Secret("hub", map[string]string{"HF_TOKEN": "hf-hidden"})
		m.Secret("registry", map[string]string{"REGISTRY_PASSWORD": "pw-hidden"})
		volume = m.Volume("models")
		a.Secrets, a.ImageSecret, a.Volumes = []string{"hub"}, "registry", map[string]string{mount: "models"}
	})
	if err := os.WriteFile(filepath.Join(volume, "weights"), []byte("of a model\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	j := s.job("a", "echo $HF_TOKEN; cat "+mount+"/weights")
	j.Key, j.Request = "a.B_c:d-1", []byte(`{"secret": "request-hidden"}`)
	j.GPUs, j.CPUs, j.Memory, j.Time = 2, 3, 100<<20+1, 1500*time.Millisecond
	j.Environ = append(j.Environ, "TOKEN=env-hidden")
	id := jobtest.Submit(t, s, j)
	if end := jobtest.Wait(t, s, id); end.State != job.Completed {
		t.Errorf("%+v", end)
	}
	text := jobtest.Printed(t, s, id)
	if text != "hf-hidden\nof a model\n" {
		t.Errorf("the sandbox has printed %q", text)
	}
	sb := s.sandbox(t, id)
	if sb.GPU != "H100:2" || sb.CPU != 3 || sb.MiB != 101 || sb.Limit != 2*time.Second || sb.Image != "FROM "+image ||
		sb.Login == "" || sb.Tags["benchgraph_key"] != j.Key {
		t.Errorf("%+v", sb)
	}
	if seen := strings.ReplaceAll(s.Seen(), sb.Output(), ""); strings.Contains(seen, "hidden") {
		t.Errorf("a secret is where others can read it: %s", seen)
	}
}

// Where one answer is lost, the library asks again and gets it, and nobody is told.
func TestFaultOneAnswerIsLost(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.Fail("SandboxCreate", modaltest.Fault{Code: codes.Unavailable, After: true})
	id := jobtest.Submit(t, s, s.job("a", "true"))
	if all := s.Sandboxes(); len(all) != 1 || all[0].ID != id.Name() || len(s.told()) > 0 {
		t.Errorf("%d sandboxes, and %s; told %q", len(all), id, s.told())
	}
}

func TestFaultTooManyRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for _, retry := range []time.Duration{100 * time.Millisecond, 0, time.Hour} {
		s.Fail("SandboxCreate", modaltest.Fault{Code: codes.ResourceExhausted, Retry: retry})
	}
	jobtest.Submit(t, s, s.job("a", "true"))
	if n, told := s.Calls("SandboxCreate"), s.told(); n != 4 || !strings.Contains(strings.Join(told, "\n"),
		"Modal takes no more sandboxes for now") {
		t.Errorf("%d calls; told %q", n, told)
	}
}

// A sandbox waits for a GPU as long as it takes.
func TestSandboxesWaitForGPUs(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(m *modaltest.Server, _ *modal.Asks) { m.Capacity(1) })
	first, second := s.job("first", "sleep 600"), s.job("second", "true")
	first.GPUs, second.GPUs = 1, 1
	blocker, waiter := jobtest.Submit(t, s, first), jobtest.Submit(t, s, second)
	jobtest.Reach(t, s, waiter, job.Pending)
	if err := s.Cancel(t.Context(), blocker); err != nil {
		t.Error(err)
	}
	if end := jobtest.Wait(t, s, waiter); end.State != job.Completed || end.Node == "" {
		t.Errorf("%+v", end)
	}
	if n := s.Calls("SandboxGetTaskId"); n > 0 { // it would end a sandbox that waits for more than 20 minutes
		t.Errorf("the library looked %d times for a machine", n)
	}
}
