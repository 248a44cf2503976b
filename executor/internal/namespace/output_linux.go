package namespace

import (
	"io"
	"os"
	"time"
)

// output is a pipe whose content is copied to a writer.
type output struct {
	ours   *os.File
	copied chan struct{} // closed: all is written
}

// newOutput returns the end of the pipe that is the program's, too.
func newOutput(w io.Writer) (o *output, theirs *os.File, err error) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	o = &output{ours: ours, copied: make(chan struct{})}
	go func() {
		defer close(o.copied)
		_, _ = io.Copy(w, ours) // the writer has the error
		ours.Close()            // nothing more is written
	}()
	return o, theirs, nil
}

// Drain waits for the rest of the output, as long as the limit: only who was handed a pipe by the program can hold it
// open for longer than that lives.
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
