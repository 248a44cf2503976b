package namespace

import (
	"io"
	"os"
	"time"
)

// output is a pipe that is copied to a writer.
type output struct {
	ours   *os.File
	copied chan struct{} // closed when everything is written
}

// newOutput returns an output, and the end of the pipe for the program.
func newOutput(w io.Writer) (o *output, theirs *os.File, err error) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	o = &output{ours: ours, copied: make(chan struct{})}
	go func() {
		defer close(o.copied)
		_, _ = io.Copy(w, ours) // the writer keeps the error
		ours.Close()            // nothing more is written
	}()
	return o, theirs, nil
}

// Drain waits for the rest of the output, at most for limit: only a process outside that was handed the pipe can hold
// it open longer than the program's descendants live.
func (p *Process) Drain(limit time.Duration) {
	late := time.AfterFunc(limit, func() {
		for _, o := range p.output {
			o.ours.Close()
		}
	})
	defer late.Stop()
	for _, o := range p.output {
		<-o.copied
	}
}
