package shell

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/benchgraph/benchgraph/device/standstill"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/failure"
)

// A server in a container has a network of its own, so it is queried from inside, with the programs of its image.

//go:embed ready.sh
var readyShell string

//go:embed ready.py
var readyPython string

// nothingToAskWith is the exit status of ready.sh if the image has no program for the query.
const nothingToAskWith = 64

// waitInside waits until a server in a container answers, its log says that it is ready, it dies, or time is up.
func (s *Server) waitInside(ctx context.Context) error {
	ctx, cancel := standstill.Timeout(ctx, s.spec.Timeout, errTimeout)
	defer cancel()
	asked := make(chan error, 1)
	if s.spec.Log == "" {
		go func() { asked <- s.ask(ctx) }()
	}
	var err error
	select {
	case err = <-asked:
	case <-s.watch.Seen():
	case <-s.process.Done():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	switch {
	case errors.Is(err, errTimeout):
		return s.late()
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTimeout):
		return context.Cause(ctx)
	case err != nil && s.dies(), s.dead():
		return s.died("start")
	}
	return err
}

// dies reports whether the server has died, after a command in its container failed: the death may be the cause, and is
// reported at about the same time.
func (s *Server) dies() bool {
	select {
	case <-s.process.Done():
		return true
	case <-time.After(time.Second):
		return false
	}
}

// ask queries the server until it answers. The query may be killed, since the server's limits of memory and processes
// include it; then it is started again.
func (s *Server) ask(ctx context.Context) error {
	port := s.sh.vars["PORT"]
	argv := []string{"sh", "-c", readyShell, "ready", port, s.spec.HTTP, readyPython}
	for {
		status, err := s.within(ctx, argv, io.Discard)
		var start *executor.StartError
		switch {
		case errors.As(err, &start) && argv[0] == "sh":
			argv = []string{"python3", "-I", "-c", readyPython, port, s.spec.HTTP}
			continue
		case errors.As(err, &start), err == nil && status.Code == nothingToAskWith:
			return &engine.Failure{Err: err, Failure: failure.Failure{Class: failure.Permanent, Rule: "not_asked",
				Stage: "start",
				Message: "the server cannot be asked whether it is ready: its image has neither python3 nor a shell " +
					"with a program for that (curl, wget, nc or bash for a page, grep for a port)",
				Remedy: `name the line of its log that shows it: ready { log = "..." }`}}
		case err != nil:
			return s.sh.notRun(err, "start")
		case status.OK():
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// within runs a command in the server's container, with its environment.
func (s *Server) within(ctx context.Context, argv []string, stdout io.Writer) (executor.Status, error) {
	cmd := s.sh.command(argv, stdout, io.Discard)
	cmd.Container = &executor.Container{Within: s.process}
	return executor.Run(ctx, s.sh.runner(), cmd)
}

// late returns the failure of a server that was not ready in time.
func (s *Server) late() error {
	fmt.Fprintf(s.output, "benchgraph: the server was not ready after %s (timeout)\n", s.spec.Timeout)
	return s.sh.Failure("start", s.output, fmt.Sprintf("the server was not ready after %s", s.spec.Timeout))
}
