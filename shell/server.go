package shell

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/benchgraph/benchgraph/container/trial"
	"github.com/benchgraph/benchgraph/device/standstill"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell/diagnosis"
	"github.com/benchgraph/benchgraph/shell/output"
	"github.com/benchgraph/benchgraph/shell/transcript"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// Server is the server process of a benchmark.
type Server struct {
	sh      *Shell
	spec    *hclspec.Server
	process executor.Process
	output  *output.Kept
	log     *os.File
	watch   *output.Watch
	bounded context.Context // of its files and its output
	told    bool            // died has reported that it went beyond these bounds
	release func()
}

// Serve starts a server, whose output is also written to logFile, and waits until it is ready. It returns at once if
// the server dies.
func (s *Shell) Serve(ctx context.Context, spec *hclspec.Server, logFile string) (*Server, error) {
	sh := s.with(spec.Env)
	log, err := workdir.Create(logFile)
	if err != nil {
		return nil, err
	}
	srv := &Server{sh: sh, spec: spec, log: log, output: sh.Capture()}
	out := io.MultiWriter(log, srv.output)
	if spec.Log != "" {
		srv.watch = output.NewWatch(spec.Log)
		out = io.MultiWriter(out, srv.watch)
	}
	argv := sh.expand(spec.Command)
	sh.Say("$ %s &\n", forLog(argv))
	bounded, limit, release := sh.bounded(ctx)
	srv.bounded, srv.release = bounded, release
	out = limit.Writer(out)
	cmd := sh.command(argv, out, out)
	if cmd.Container != nil {
		cmd.Container.Shm, cmd.Container.Grants = spec.ShmSize, GrantsOf(spec)
	}
	srv.process, err = sh.runner().Start(bounded, cmd)
	if err != nil {
		srv.close()
		return nil, sh.notRun(err, "start")
	}
	transcript.Of(sh.env).Serves(srv.process, transcript.Ready{HTTP: spec.HTTP, Log: spec.Log, Port: sh.vars["PORT"]})
	wait := srv.waitReady
	if sh.box != nil {
		wait = srv.waitInside
	}
	if err := wait(ctx); err != nil {
		if end := srv.Stop(); !errors.Is(err, end) {
			err = errors.Join(err, end)
		}
		return nil, err
	}
	return srv, nil
}

// GrantsOf returns the grants that a server's container requests beyond the standard ones.
func GrantsOf(spec *hclspec.Server) trial.Grants {
	return trial.Grants{Ulimits: spec.Ulimits, Devices: spec.Devices, Caps: spec.Capabilities}
}

// LimitsOf returns the declared limits of a server's container, as pairs of name and number.
func LimitsOf(spec *hclspec.Server) (limits [][]string) {
	if spec.ShmSize > 0 {
		limits = append(limits, []string{"shm_size", strconv.FormatInt(spec.ShmSize, 10)})
	}
	return append(limits, GrantsOf(spec).List()...)
}

// waitReady polls until the server answers, its log says that it is ready, it dies, or time is up.
func (s *Server) waitReady(ctx context.Context) error {
	ctx, stop := standstill.Timeout(ctx, s.spec.Timeout, errTimeout)
	defer stop()
	pause := 10 * time.Millisecond
	for {
		if s.answers(ctx) {
			if s.dead() { // another process answered on its port
				return s.died("start")
			}
			return nil
		}
		select {
		case <-s.process.Done():
			return s.died("start")
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errTimeout) {
				return s.late()
			}
			return context.Cause(ctx)
		case <-s.watch.Seen():
		case <-time.After(pause):
		}
		pause = min(2*pause, 250*time.Millisecond)
	}
}

// answers queries the server once, in the declared way.
func (s *Server) answers(ctx context.Context) bool {
	address := net.JoinHostPort("127.0.0.1", s.sh.vars["PORT"])
	switch {
	case s.spec.Log != "":
		return s.watch.Hit()
	case s.spec.HTTP != "":
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+s.spec.HTTP, nil)
		if err != nil {
			return false
		}
		resp, err := s.client().Do(req)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	default:
		conn, err := s.dial(ctx, s.sh.vars["PORT"])
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
}

func (s *Server) dead() bool {
	select {
	case <-s.process.Done():
		return true
	default:
		return false
	}
}

// crashed reports whether the server has ended by itself with an error. A server that ended well because its client
// told it to has not crashed.
func (s *Server) crashed(ctx context.Context) bool {
	if s.runs(ctx) || !s.dies() {
		return false
	}
	status, err := s.process.Stop()
	return err == nil && !status.OK()
}

// runs reports whether the server still runs, although its end may not have been reported yet.
func (s *Server) runs(ctx context.Context) bool {
	if s.dead() {
		return false
	}
	if c, ok := s.process.(executor.Contained); ok {
		info, err := s.sh.config.Engine.Inspect(ctx, c.Container())
		// another call reports an engine that does not answer
		return err != nil || info.State != nil && info.State.Running
	}
	select {
	case <-s.process.Done():
		return false
	case <-time.After(20 * time.Millisecond):
		return true
	}
}

// Client runs the measured command in the shell sh. It ends the command when the server dies. If the server crashed,
// the run is no sample even if the client succeeded: many clients count failed requests and go on.
func (s *Server) Client(ctx context.Context, sh *Shell, command hclspec.Command, timeout time.Duration,
	stdout io.Writer) error {
	if sh.box != nil {
		sh.box.Beside = s.process
	}
	if sh.cell != nil {
		sh.cell.Beside = s.process
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.process.Done():
			cancel(errServerDied)
		case <-ctx.Done():
		}
	}()
	err := sh.Run(ctx, "run", command, timeout, stdout)
	if err != nil && s.dead() || err == nil && s.crashed(ctx) {
		return s.died("run")
	}
	return err
}

var errServerDied = errors.New("the server died")

// died returns the failure of a server that ended by itself.
func (s *Server) died(stage string) error {
	status, err := s.process.Stop()
	switch s.told = ended(s.bounded); {
	case s.told:
		return s.sh.outOfDisk(s.bounded, stage, s.output)
	case err != nil:
		return s.sh.notRun(err, stage)
	case status.OOM:
		return s.sh.outOfMemory(stage, s.output)
	}
	return s.sh.Failure(stage, s.output, "the server died: "+diagnosis.Ended(status))
}

// Stop ends the server and all processes that it started. Its log is whole only if there is no error.
func (s *Server) Stop() error {
	transcript.Of(s.sh.env).Stops(s.process)
	_, err := s.process.Stop()
	defer s.close()
	_, lost := errors.AsType[*output.Unwritten](err)
	switch {
	case s.told:
		return nil
	case ended(s.bounded):
		return s.sh.outOfDisk(s.bounded, "run", s.output)
	case lost:
		return err
	case err != nil:
		return &engine.Failure{Err: err, Failure: failure.Failure{Class: failure.Infra, Rule: "not_stopped",
			Stage: "stop", Message: "the server could not be ended: " + err.Error()}}
	}
	return nil
}

func (s *Server) close() {
	s.release()
	s.log.Close()
	s.output.Close()
}
