package pipe_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/pipe"
)

// TestMain is the program of a scheduler, too.
func TestMain(m *testing.M) {
	if os.Getenv("PIPE_TEST_DIR") == "" {
		os.Exit(m.Run())
	}
	err := pipe.Serve(context.Background(), os.Stdin, os.Stdout, func(_ context.Context, settings json.RawMessage,
		told func(string)) (pipe.Scheduler, error) {
		var s files
		if err := json.Unmarshal(settings, &s); err != nil {
			return nil, err
		}
		if s.Closed {
			return nil, errors.New("the office is closed")
		}
		told("open")
		s.dir = os.Getenv("PIPE_TEST_DIR")
		return s, nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// files is a scheduler that keeps its jobs in files, and ends with its process in the midst of a call where it is told.
type files struct {
	Closed bool
	dir    string
}

func (f files) path(key string) string { return filepath.Join(f.dir, key) }

func (f files) Submit(ctx context.Context, j job.Job) (job.ID, bool, error) {
	switch j.Name {
	case "refused":
		return "", false, fmt.Errorf("no: %w", &job.Refused{Scheduler: "files", Name: j.Name, Words: "too large",
			Remedy: "less"})
	case "doubt":
		<-ctx.Done()
		return "", false, &job.Unanswered{Scheduler: "files", Key: j.Key, Remedy: "look", Cause: context.Cause(ctx)}
	}
	id, found, err := f.Find(ctx, j.Key)
	if !found {
		err = os.WriteFile(f.path(j.Key), append(j.Request, j.Script...), 0o600)
		f.dies("submit")
	}
	return id, found, err
}

// dies ends the process, once.
func (f files) dies(at string) {
	if os.Remove(f.path("dies-"+at)) == nil {
		fmt.Fprintln(os.Stderr, "something else\nout of luck")
		os.Exit(3)
	}
}

func (f files) Find(_ context.Context, key string) (job.ID, bool, error) {
	_, err := os.Stat(f.path(key))
	return job.NewID("1", key), err == nil, nil
}

func (f files) Cancel(_ context.Context, id job.ID) error { return os.Remove(f.path(id.Key())) }

func (f files) Wait(ctx context.Context, id job.ID, told func(job.Status)) (job.End, error) {
	st := job.Status{State: job.Running, Node: "n1", Started: time.Unix(1795641800, 0).UTC()}
	told(st)
	f.dies("wait")
	for {
		if _, found, _ := f.Find(ctx, id.Key()); !found {
			st.State = job.Failed
			return job.End{Status: st, Code: 3, Signal: 4, Lost: true, Held: "x"}, nil
		}
		select {
		case <-ctx.Done():
			return job.End{}, context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (f files) Log(_ context.Context, id job.ID, w io.Writer) error {
	text, err := os.ReadFile(f.path(id.Key()))
	if err == nil {
		_, err = w.Write(text[:len(text)/2])
		f.dies("log")
	}
	if err == nil {
		_, err = w.Write(text[len(text)/2:])
	}
	return err
}

func open(t *testing.T, settings files) (p *pipe.Program, dir string, said func() []string, err error) {
	t.Helper()
	dir = t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []string
	p, err = pipe.Open(t.Context(), pipe.Options{Program: self, Environ: []string{"PIPE_TEST_DIR=" + dir},
		Settings: settings, Told: func(text string) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, text)
		}})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, dir, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}, err
}

// Everything that goes through the pipe arrives unchanged, also if the process ends during each call.
func TestCalls(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("dies ", dies), func(t *testing.T) {
			t.Parallel()
			p, dir, said, err := open(t, files{})
			if err != nil {
				t.Fatal(err)
			}
			if dies {
				for _, at := range []string{"submit", "wait", "log"} {
					if err := os.WriteFile(filepath.Join(dir, "dies-"+at), nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			request := strings.Repeat("\x00\xff line\n", 50000)
			id, found, err := p.Submit(t.Context(), job.Job{Key: "k", Script: "the script", Request: []byte(request)})
			if id != "1/k" || found != dies || err != nil {
				t.Errorf("%s, %v, %v", id, found, err)
			}
			if id, found, err = p.Find(t.Context(), "k"); id != "1/k" || !found || err != nil {
				t.Errorf("%s, %v, %v", id, found, err)
			}
			var log strings.Builder
			if err := p.Log(t.Context(), id, &log); err != nil || log.String() != request+"the script" {
				t.Errorf("%d bytes, %v", log.Len(), err)
			}
			states := make(chan job.Status, 9)
			ends := make(chan job.End)
			go func() {
				end, err := p.Wait(t.Context(), id, func(st job.Status) { states <- st })
				if err != nil {
					t.Error(err)
				}
				ends <- end
			}()
			st := job.Status{State: job.Running, Node: "n1", Started: time.Unix(1795641800, 0).UTC()}
			if got := <-states; got != st {
				t.Errorf("%+v", got)
			}
			if err := p.Cancel(t.Context(), id); err != nil {
				t.Error(err)
			}
			st.State = job.Failed
			if end := <-ends; end != (job.End{Status: st, Code: 3, Signal: 4, Lost: true, Held: "x"}) {
				t.Errorf("%+v", end)
			}
			want := 1
			if dies {
				want = 4
			}
			if got := len(said()); got != want {
				t.Errorf("%d processes, want %d", got, want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	p, dir, _, err := open(t, files{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = p.Submit(t.Context(), job.Job{Key: "a", Name: "refused"})
	if no, ok := errors.AsType[*job.Refused](err); !ok || *no != (job.Refused{Scheduler: "files", Name: "refused",
		Words: "too large", Remedy: "less"}) {
		t.Errorf("%v", err)
	}
	mine := errors.New("interrupted")
	ctx, stop := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { stop(mine) })
	_, _, err = p.Submit(ctx, job.Job{Key: "a", Name: "doubt"})
	if doubt, ok := errors.AsType[*job.Unanswered](err); !ok || doubt.Remedy != "look" || !errors.Is(err, mine) {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "k"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(ctx, "1/k", nil); !errors.Is(err, mine) {
		t.Errorf("%v", err)
	}
	if err := p.Cancel(t.Context(), "1/other"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v", err)
	}
}

func TestProgramsThatAreNone(t *testing.T) {
	t.Parallel()
	if _, _, _, err := open(t, files{Closed: true}); err == nil || err.Error() != "the office is closed" {
		t.Errorf("%v", err)
	}
	for program, want := range map[string]string{"true": "true ended", "false": "false ended (exit status 1)"} {
		path, err := pipe.Find(program, "/nowhere", "relative:/usr/bin:/bin")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = pipe.Open(t.Context(), pipe.Options{Program: path}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", program, err)
		}
	}
	if _, err := pipe.Find("benchgraph-none", "/nowhere", "/usr/bin"); err == nil ||
		!strings.HasPrefix(err.Error(), "the program benchgraph-none is neither beside benchgraph, in /nowhere") {
		t.Errorf("%v", err)
	}
}

// A program that breaks the protocol and would live on is killed.
func TestProgramsThatBreakTheProtocol(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"something else":     "echo hello; exec sleep 60",
		"no output":          "exec sleep 60 >&-",
		"a line without end": "exec tr '\\0' x </dev/zero",
		"JSON without end":   `printf '{"told":"'; exec tr '\0' x </dev/zero`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "program")
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("it lives on"))
			defer stop()
			_, err := pipe.Open(ctx, pipe.Options{Program: program, Environ: os.Environ()})
			if err == nil || !strings.HasPrefix(err.Error(), "program ended (signal: ") {
				t.Errorf("%v", err)
			}
		})
	}
}

// An interrupt ends the wait for a program that never answers the first call.
func TestAnInterruptEndsTheOpening(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mute"), []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	mine := errors.New("interrupted")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(mine)
	if _, err := pipe.OpenNamed(ctx, "mute", dir, "", pipe.Options{Environ: os.Environ()}); !errors.Is(err, mine) {
		t.Error(err)
	}
}

// A caller of another release gets an error. A malformed call ends the program.
func TestServe(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"number":1,"call":"open","protocol":99}`: "install both of one release",
		`{"number":1,"call":"find","key":"a"}`:     "the scheduler is not open",
		`{"number":1,"call":"open","protocol":1}
{"number":2,"call":"dance"}`: "",
	} {
		var out strings.Builder
		err := pipe.Serve(t.Context(), strings.NewReader(in), &out, func(context.Context, json.RawMessage,
			func(string)) (pipe.Scheduler, error) {
			return files{}, nil
		})
		if err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v, %s", in, err, out.String())
		}
	}
	if err := pipe.Serve(t.Context(), strings.NewReader("hello"), io.Discard, nil); err == nil {
		t.Error("hello is no call")
	}
}
