//go:build linux || darwin

package executor

import (
	"io"
	"time"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/stream"
	"github.com/benchgraph/benchgraph/executor/mask"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/head"
)

// output is where a program in a container writes to.
type output struct {
	stdout, stderr stream.Counted
	sinks          mask.Sinks
	start          head.Buffer   // of both
	copied         chan struct{} // closed: all is written
	err            error         // of reading, before all was there; set before copied is closed
}

func newOutput(cmd Command) *output {
	o := &output{start: head.Buffer{Most: 1024}}
	stdout, stderr := io.Discard, io.Discard
	// Each has a mask.Writer of its own even for the same writer: a secret may be in pieces, with a piece of the other
	// between.
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

// drain waits until all output is there, which is nearly always so when the program has ended.
func (o *output) drain() error {
	select {
	case <-o.copied:
		return nil
	case <-time.After(killTime):
		return &container.Error{Doing: "read the output", Reason: "the engine does not bring it to an end",
			Class: failure.Transient}
	}
}

// close passes on what is held back, once the stream is closed, and returns the first error of writing.
func (o *output) close() error {
	<-o.copied
	return o.sinks.Close()
}

// steady goes on when what is below fails, which remembers that, so that the program is not blocked.
type steady struct{ s io.Writer }

func (w steady) Write(b []byte) (int, error) {
	_, _ = w.s.Write(b) // the sink has the error
	return len(b), nil
}
