package tasks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/hclspec"
)

// server is the process that a benchmark's command talks to.
type server struct {
	sh      *shell
	process executor.Process
	output  *captured
	log     *os.File
	watch   *logWatch
}

// startServer starts a server and waits until it is ready. It notices at once when the server dies instead.
func startServer(ctx context.Context, sh *shell, spec *hclspec.Server, logFile string) (*server, error) {
	sh = sh.with(spec.Env)
	log, err := create(logFile)
	if err != nil {
		return nil, err
	}
	s := &server{sh: sh, log: log, output: sh.capture()}
	out := io.MultiWriter(log, s.output.out)
	if spec.Log != "" {
		s.watch = &logWatch{pattern: regexp.MustCompile(spec.Log), found: make(chan struct{})}
		out = io.MultiWriter(out, s.watch)
	}
	argv := sh.expand(spec.Command)
	sh.say("$ %s &\n", strings.Join(argv, " "))
	s.process, err = sh.runner().Start(ctx, sh.command(argv, out, out))
	if err != nil {
		s.close()
		return nil, sh.notRun(err, "start")
	}
	wait := s.waitReady
	if sh.box != nil {
		wait = s.waitInside
	}
	if err := wait(ctx, spec); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// waitReady polls until the server answers, its log says so, it dies, or time is up.
func (s *server) waitReady(ctx context.Context, spec *hclspec.Server) error {
	deadline := time.NewTimer(spec.Timeout)
	defer deadline.Stop()
	pause := 10 * time.Millisecond
	for {
		if s.answers(ctx, spec) {
			if s.dead() { // somebody else answered on its port
				return s.died("start")
			}
			return nil
		}
		poll := time.NewTimer(pause)
		select {
		case <-s.process.Done():
			poll.Stop()
			return s.died("start")
		case <-ctx.Done():
			poll.Stop()
			return context.Cause(ctx)
		case <-deadline.C:
			poll.Stop()
			return s.late(spec)
		case <-s.watch.seen():
			poll.Stop()
		case <-poll.C:
		}
		pause = min(2*pause, 250*time.Millisecond)
	}
}

// answers asks the server once, in the way that the file says.
func (s *server) answers(ctx context.Context, spec *hclspec.Server) bool {
	address := net.JoinHostPort("127.0.0.1", s.sh.vars["PORT"])
	switch {
	case spec.Log != "":
		return s.watch.hit()
	case spec.HTTP != "":
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+spec.HTTP, nil)
		if err != nil {
			return false
		}
		resp, err := s.sh.p.HTTP.Do(req)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	default:
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
}

func (s *server) dead() bool {
	select {
	case <-s.process.Done():
		return true
	default:
		return false
	}
}

// crashed says whether the server has ended by itself, and not well. One that was told to end by its client, and did, is fine.
func (s *server) crashed(ctx context.Context) bool {
	if s.runs(ctx) || !s.dies() {
		return false
	}
	status, err := s.process.Stop()
	return err == nil && !status.OK()
}

// runs says whether the server still runs, where its end may not have been told yet.
func (s *server) runs(ctx context.Context) bool {
	if s.dead() {
		return false
	}
	if c, ok := s.process.(executor.Contained); ok {
		info, err := s.sh.p.Engine.Inspect(ctx, c.Container())
		return err != nil || info.State != nil && info.State.Running // an engine that does not answer is told of soon enough
	}
	select {
	case <-s.process.Done():
		return false
	case <-time.After(20 * time.Millisecond):
		return true
	}
}

// died is the failure of a server that ended by itself.
func (s *server) died(stage string) error {
	status, err := s.process.Stop()
	if err != nil {
		return s.sh.notRun(err, stage)
	}
	if status.OOM {
		return s.sh.outOfMemory(stage, s.output)
	}
	return s.sh.failure(stage, s.output, "the server died: "+ended(status))
}

// stop ends the server and all that it started.
func (s *server) stop() error {
	_, err := s.process.Stop()
	s.close()
	if err != nil {
		return &engine.Failure{Err: err, Failure: cache.Failure{Class: cache.Infra, Rule: "not_stopped", Stage: "stop", Message: "the server could not be ended: " + err.Error()}}
	}
	return nil
}

func (s *server) close() {
	s.log.Close()
	s.output.close()
}

// logWatch looks for a pattern in each line that a server prints.
type logWatch struct {
	pattern *regexp.Regexp
	line    []byte // what the last line holds so far, up to longestLine
	found   chan struct{}
	done    bool
}

const longestLine = 64 << 10

// Write takes the next piece of output. Only the server's output is written here, by one goroutine.
func (w *logWatch) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && !w.done; {
		piece, after, ended := bytes.Cut(rest, []byte("\n"))
		w.line = append(w.line, piece[:min(len(piece), longestLine-len(w.line))]...)
		if w.pattern.Match(w.line) {
			w.done = true
			close(w.found)
		}
		if ended {
			w.line = w.line[:0]
		}
		rest = after
	}
	return len(p), nil
}

// seen is closed once the pattern was there; without a watch it never is.
func (w *logWatch) seen() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.found
}

func (w *logWatch) hit() bool {
	select {
	case <-w.found:
		return true
	default:
		return false
	}
}
