package service_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/modal"
	"github.com/benchgraph/benchgraph/executor/modal/modaltest"
)

// What Modal does to a sandbox is told apart from what its command does.
func TestHowSandboxesEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for name, c := range map[string]struct {
		end  func(*modaltest.Sandbox)
		want job.State
	}{
		"terminated": {(*modaltest.Sandbox).Terminate, "CANCELLED"},
		"preempted":  {(*modaltest.Sandbox).Preempt, "PREEMPTED"},
		"evicted":    {(*modaltest.Sandbox).Evict, job.OutOfMemory},
		"lost":       {(*modaltest.Sandbox).Break, "NODE_FAIL"},
		"timed out":  {(*modaltest.Sandbox).TimeOut, job.Timeout},
		"forgotten":  {s.Forget, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := s.submit(t, s.job(strings.ReplaceAll(name, " ", "-"), "sleep 600"))
			c.end(s.sandbox(t, id))
			end := s.wait(t, id)
			if c.want == "" && !end.Lost || c.want != "" && (end.State != c.want || end.Lost) || end.Code != 0 {
				t.Errorf("%+v, want %s", end, c.want)
			}
		})
	}
}

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
	j := s.job("a", "env -0 | sort -z | tr '\\n\\0' '~\\n'; cat "+mount+"/weights")
	j.Key, j.Request = "a.B_c:d-1", []byte(`{"secret": "request-hidden"}`)
	j.GPUs, j.CPUs, j.Memory, j.Time = 2, 3, 100<<20+1, 1500*time.Millisecond
	j.Environ = append(j.Environ, "A=1,2\nb='\"$c", "EMPTY=", "TOKEN=env-hidden")
	id := s.submit(t, j)
	if end := s.wait(t, id); end.State != job.Completed {
		t.Errorf("%+v", end)
	}
	text := s.printed(t, id)
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "=")
		if !slices.Contains([]string{"A", "BENCHGRAPH_JOB", "BENCHGRAPH_REQUEST", "EMPTY", "HF_TOKEN", "HOME", "PATH",
			"PWD", "TOKEN", "of a model"}, name) && !strings.HasPrefix(name, "MODAL_") {
			t.Errorf("the sandbox has %s", line)
		}
	}
	for _, want := range []string{"A=1,2~b='\"$c\n", "HF_TOKEN=hf-hidden\n", "TOKEN=env-hidden\n", "of a model\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
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

// The sandbox is there, but the answer is lost: the library asks again and gets the first answer, or gives up, and the
// sandbox is found by its key, whether it runs or has ended.
func TestFaultAnswerIsLost(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"one": "sleep 600", "many": "sleep 600", "ended": "true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil)
			lost := slices.Repeat([]modaltest.Fault{{Code: codes.Unavailable, After: true}}, 5)
			if name == "one" {
				lost = lost[:1]
			}
			s.Fail("SandboxCreate", lost...)
			id := s.submit(t, s.job(name, script))
			if all := s.Sandboxes(); len(all) != 1 || all[0].ID != id.Name() {
				t.Errorf("%d sandboxes, and %s", len(all), id)
			}
			if told := s.told(); (name == "one") != (len(told) == 0) {
				t.Errorf("told %q", told)
			}
		})
	}
}

// Whatever many submit at once, there is one sandbox of a key.
func TestOneSandboxOfAKey(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var all sync.WaitGroup
	ids := make([]job.ID, 6)
	for i := range ids {
		all.Go(func() { ids[i], _, _ = s.Submit(t.Context(), s.job("a", "sleep 600")) })
	}
	all.Wait()
	if made := s.Sandboxes(); len(made) != 1 || len(slices.Compact(ids)) != 1 || ids[0].Name() != made[0].ID {
		t.Errorf("%d sandboxes, and %s", len(made), ids)
	}
}

// Where Modal does not answer for a while, nothing has failed, and the user is told once.
func TestFaultModalIsAway(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	id := s.submit(t, s.job("a", "sleep 0.2"))
	away := slices.Repeat([]modaltest.Fault{{Code: codes.Unavailable}}, 9)
	s.Fail("SandboxWait", away...)
	s.Fail("SandboxList", away...)
	if end := s.wait(t, id); end.State != job.Completed {
		t.Errorf("%+v", end)
	}
	if told := s.told(); len(told) != 1 || !strings.HasPrefix(told[0], "modal: Modal does not answer") {
		t.Errorf("told %q", told)
	}
}

func TestFaultTooManyRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for _, retry := range []time.Duration{100 * time.Millisecond, 0, time.Hour} {
		s.Fail("SandboxCreate", modaltest.Fault{Code: codes.ResourceExhausted, Retry: retry})
	}
	s.submit(t, s.job("a", "true"))
	if n, told := s.Calls("SandboxCreate"), s.told(); n != 4 || !strings.Contains(strings.Join(told, "\n"),
		"Modal takes no more sandboxes for now") {
		t.Errorf("%d calls; told %q", n, told)
	}
}

// Where ctx ends and no answer has come, nobody knows whether there is a sandbox.
func TestFaultDoubt(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.Fail("SandboxCreate", slices.Repeat([]modaltest.Fault{{Code: codes.Unavailable}}, 1000)...)
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	id, _, err := s.Submit(ctx, s.job("a", "true"))
	if _, ok := errors.AsType[*job.Unanswered](err); !ok || !errors.Is(err, context.DeadlineExceeded) || id != "" {
		t.Errorf("%q, %v", id, err)
	}
}

// A sandbox waits for a GPU as long as it takes, and can be cancelled meanwhile.
func TestSandboxesWaitForGPUs(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(m *modaltest.Server, _ *modal.Asks) { m.Capacity(1) })
	j := s.job("first", "sleep 600")
	j.GPUs = 1
	first := s.submit(t, j)
	j = s.job("second", "true")
	j.GPUs = 1
	second := s.submit(t, j)
	states := make(chan job.State, 9)
	go func() {
		if _, err := s.Wait(t.Context(), second, func(st job.Status) { states <- st.State }); err != nil {
			t.Error(err)
		}
		close(states)
	}()
	if st := <-states; st != job.Pending {
		t.Errorf("%s at first", st)
	}
	j.Key = "key.third"
	third := s.submit(t, j)
	if err := s.Cancel(t.Context(), third); err != nil {
		t.Error(err)
	}
	if err := s.Cancel(t.Context(), first); err != nil {
		t.Error(err)
	}
	for st := range states {
		if st != job.Running {
			t.Errorf("%s", st)
		}
	}
	if end := s.wait(t, second); end.State != job.Completed || end.Node == "" {
		t.Errorf("%+v", end)
	}
	if n := s.Calls("SandboxGetTaskId"); n > 0 { // it would end a sandbox that waits for more than 20 minutes
		t.Errorf("the library looked %d times for a machine", n)
	}
}

// What a job prints arrives while it runs. Bytes that are no text arrive as marks.
func TestLogsAreStreamed(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	goes := filepath.Join(t.TempDir(), "go")
	id := s.submit(t, s.job("a", `printf 'first\033[2J\377\0\n'
while [ ! -e `+goes+` ]; do sleep 0.02; done; echo last`))
	r := &reader{seen: make(chan struct{}, 99)}
	done := make(chan error, 1)
	go func() { done <- s.Log(t.Context(), id, r) }()
	<-r.seen
	if err := os.WriteFile(goes, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || r.String() != "first\x1b[2J\uFFFD\x00\nlast\n" {
		t.Errorf("%q, %v", r.String(), err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if err := s.Log(ctx, s.submit(t, s.job("b", "sleep 600")), r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the log of a job that runs: %v", err)
	}
}

type reader struct {
	strings.Builder
	seen chan struct{}
}

func (r *reader) Write(p []byte) (int, error) {
	n, err := r.Builder.Write(p)
	r.seen <- struct{}{}
	return n, err
}
