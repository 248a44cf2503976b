package container_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	api "github.com/docker/docker/api/types/container"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/failure"
)

// playEngine answers all requests but pings with f.
func playEngine(t *testing.T, f http.HandlerFunc) *container.Engine {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/_ping") {
			w.Header().Set("Api-Version", "1.41")
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // else the connection may break before the answer is there
		f(w, r)
	})}}
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return container.Open(container.Options{Environ: map[string]string{"DOCKER_HOST": "unix://" + socket},
		Patience: 200 * time.Millisecond})
}

func TestMeaningsOfEngineErrors(t *testing.T) {
	for _, test := range []struct {
		code  int
		says  string
		class failure.Class
		want  string
	}{
		{500, "mkdir /var/lib/docker/overlay2/x: no space left on device", failure.Infra,
			"make room where the engine keeps its images"},
		{500, `could not select device driver \"\" with capabilities: [[gpu]]`, failure.Infra,
			"nvidia-ctk runtime configure"},
		{500, "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=GPU-1", failure.Infra,
			"nvidia-ctk cdi generate --device-name-strategy=uuid"},
		{500, "failed to create shim task: nvidia-container-cli: initialization error", failure.Infra,
			"whether nvidia-smi works"},
		{400, "could not find an available, non-overlapping IPv4 address pool among the defaults", failure.Infra,
			"docker network prune"},
		{500, "OCI runtime create failed: fork/exec: resource temporarily unavailable", failure.Transient,
			"run fewer at a time"},
		{503, "something", failure.Transient, "create container: something"},
		{409, "name is in use", failure.Transient, "name is in use"},
		{400, "invalid mount config for type bind: bind source path does not exist: /builds/p", failure.Infra,
			"at the same path as on the host"},
		{400, "client version 1.30 is too old. Minimum supported API version is 1.40", failure.Infra,
			"unset DOCKER_API_VERSION"},
		{400, "invalid mount config", failure.Permanent, "create container: invalid mount config"},
		{500, "anything else", failure.Permanent, "anything else"},
	} {
		e := playEngine(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(test.code)
			fmt.Fprintf(w, `{"message":"%s"}`, test.says)
		})
		_, err := e.Create(t.Context(), "x", &api.Config{}, &api.HostConfig{})
		if s, err := e.Attach(t.Context(), "x", false); s != nil || err == nil {
			t.Errorf("attached to an engine that says %d: %v, %v", test.code, s, err)
		}
		if container.Class(err) != test.class || !strings.Contains(fmt.Sprint(err), test.want) ||
			container.IsGone(err) {
			t.Errorf("%d %s: %v (%s), want %q (%s)", test.code, test.says, err, container.Class(err), test.want,
				test.class)
		}
	}
}

// The meaning of a long message may be at its end, which is shown.
func TestTheEndOfALongMessageCounts(t *testing.T) {
	e := playEngine(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w,
			"{\"errorDetail\":{\"message\":\"ApplyLayer exit status 1: write /%s: no space left on device\"}}\n",
			strings.Repeat("deep/", 1000))
	})
	_, err := e.Import(t.Context(), strings.NewReader(""), nil)
	if !container.IsFull(err) || container.Class(err) != failure.Infra || len(err.Error()) > 500 {
		t.Errorf("%v (%s)", err, container.Class(err))
	}
	for _, want := range []string{"ApplyLayer", "deep/: no space left on device", "make room"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestAnEngineThatBreaksOffOrSaysNothing(t *testing.T) {
	release := make(chan struct{})
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		class  failure.Class
		want   string
	}{
		{"breaks off before its answer", func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, failure.Transient, "broke off"},
		{"breaks off in its answer", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"Id":"abc`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, failure.Transient, "broke off"},
		{"says nothing", func(_ http.ResponseWriter, r *http.Request) {
			<-release
		}, failure.Infra, "did not answer within 200ms (create container)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := playEngine(t, test.answer)
			_, err := e.Create(t.Context(), "x", &api.Config{}, &api.HostConfig{})
			if container.Class(err) != test.class || !container.IsGone(err) ||
				!strings.Contains(fmt.Sprint(err), test.want) {
				t.Errorf("%v (%s)", err, container.Class(err))
			}
			if test.class == failure.Infra {
				// Long requests are watched by pings, which this engine answers: the context ends the request.
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("late"))
				defer cancel()
				if _, err := e.Commit(ctx, "x", api.CommitOptions{}); err == nil || err.Error() != "late" {
					t.Errorf("commit: %v", err)
				}
				close(release)
			}
		})
	}
}

// A connection that nobody answers, not even its other end's kernel, is given up, too.
func TestAnEngineThatHangsWhileSomethingLongIsDone(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e := container.Open(container.Options{Environ: map[string]string{"DOCKER_HOST": "unix://" + l.Addr().String()},
		Patience: 200 * time.Millisecond})
	for name, f := range map[string]func() error{
		"commit": func() error { _, err := e.Commit(t.Context(), "x", api.CommitOptions{}); return err },
		"attach": func() error { _, err := e.Attach(t.Context(), "x", false); return err },
		"wait":   func() error { _, err := e.Await(t.Context(), "x"); return err },
		"ping":   func() error { return e.Ping(t.Context()) },
	} {
		if err := f(); !container.IsGone(err) || container.Class(err) != failure.Infra ||
			!strings.Contains(err.Error(), "did not answer within 200ms") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
