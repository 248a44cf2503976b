//go:build linux || darwin

package docker

import (
	"io"
	"time"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/stream"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/family"
	"github.com/benchgraph/benchgraph/executor/mask"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/head"
)

// output connects the output of a program in a container with the command's writers.
type output struct {
	stdout, stderr stream.Counted
	sinks          mask.Sinks
	start          head.Buffer   // beginning of both streams
	copied         chan struct{} // closed when everything is written
	err            error         // error of reading that cut the output off; set before copied is closed
}

func newOutput(cmd executor.Command) *output {
	o := &output{start: head.Buffer{Most: 1024}}
	stdout, stderr := io.Discard, io.Discard
	// Each stream has its own mask.Writer even for the same writer: a secret may arrive in pieces, with output of the
	// other stream between them.
	if cmd.Stdout != nil {
		stdout = steady{o.sinks.Open(cmd.Stdout, cmd.Secrets)}
	}
	if cmd.Stderr != nil {
		stderr = steady{o.sinks.Open(cmd.Stderr, cmd.Secrets)}
	}
	o.stdout.Writer, o.stderr.Writer = io.MultiWriter(&o.start, stdout), io.MultiWriter(&o.start, stderr)
	return o
}

func (o *output) follow(s *stream.Stream) {
	o.copied = make(chan struct{})
	go func() {
		defer close(o.copied)
		o.err = s.Copy(&o.stdout, &o.stderr)
	}()
}

// drain waits until all output has arrived, which is usually the case when the program has ended.
func (o *output) drain() error {
	select {
	case <-o.copied:
		return nil
	case <-time.After(family.KillTime):
		return &container.Error{Doing: "read the output", Reason: "the engine does not bring it to an end",
			Class: failure.Transient}
	}
}

// close writes the bytes that were held back, after the stream is closed, and returns the first write error.
func (o *output) close() error {
	<-o.copied
	return o.sinks.Close()
}

// steady ignores write errors, so that the program is not blocked. The sink below remembers the error.
type steady struct{ s io.Writer }

func (w steady) Write(b []byte) (int, error) {
	_, _ = w.s.Write(b) // the sink has the error
	return len(b), nil
}
