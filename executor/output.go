//go:build linux || darwin

package executor

import (
	"cmp"
	"io"
	"time"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/executor/mask"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/head"
)

// output is where a program in a container writes to.
type output struct {
	stdout, stderr io.Writer
	sinks          sinks
	start          head.Buffer   // of both
	copied         chan struct{} // closed: all is written
	err            error         // of reading; set before copied is closed
}

func newOutput(cmd Command) *output {
	o := &output{stdout: io.Discard, stderr: io.Discard, start: head.Buffer{Most: 1024}}
	// Each has a mask.Writer of its own even for the same writer: a secret may be in pieces, with a piece of the other
	// between.
	if cmd.Stdout != nil {
		o.stdout = steady{o.sinks.open(cmd.Stdout, cmd.Secrets)}
	}
	if cmd.Stderr != nil {
		o.stderr = steady{o.sinks.open(cmd.Stderr, cmd.Secrets)}
	}
	o.stdout, o.stderr = io.MultiWriter(&o.start, o.stdout), io.MultiWriter(&o.start, o.stderr)
	return o
}

// follow writes all that comes from s.
func (o *output) follow(s *container.Stream) {
	o.copied = make(chan struct{})
	go func() {
		defer close(o.copied)
		o.err = s.Copy(o.stdout, o.stderr)
	}()
}

// drain waits until all output is there, which is nearly always so when the program has ended.
func (o *output) drain() error {
	select {
	case <-o.copied:
		return o.err
	case <-time.After(killTime):
		return &container.Error{Doing: "read the output", Reason: "the engine does not bring it to an end",
			Class: failure.Transient}
	}
}

// close passes on what is held back, once the stream is closed, and returns the first error of writing.
func (o *output) close() error {
	<-o.copied
	return o.sinks.close()
}

// sink is a mask.Writer that remembers the first error of writing.
type sink struct {
	*mask.Writer
	err error
}

func (s *sink) Write(b []byte) (int, error) {
	n, err := s.Writer.Write(b)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

// sinks are those of a program.
type sinks []*sink

func (all *sinks) open(w io.Writer, secrets []string) *sink {
	s := &sink{Writer: mask.New(w, secrets)}
	*all = append(*all, s)
	return s
}

// close passes on what is held back, and returns the first error of writing.
func (all sinks) close() (first error) {
	for _, s := range all {
		first = cmp.Or(first, s.err, s.Writer.Close())
	}
	return first
}

// steady goes on when what is below fails, which remembers that, so that the program is not blocked.
type steady struct{ s *sink }

func (w steady) Write(b []byte) (int, error) {
	_, _ = w.s.Write(b) // the sink has the error
	return len(b), nil
}
