package mask

import (
	"cmp"
	"io"
)

// Sinks are where a program writes to.
type Sinks []*sink

// sink is a Writer that remembers the first error of writing.
type sink struct {
	*Writer
	err error
}

func (s *sink) Write(b []byte) (int, error) {
	n, err := s.Writer.Write(b)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

// Open adds a sink, which writes to w without secrets.
func (all *Sinks) Open(w io.Writer, secrets []string) io.Writer {
	s := &sink{Writer: New(w, secrets)}
	*all = append(*all, s)
	return s
}

// Close passes on what is held back, and returns the first error of writing.
func (all Sinks) Close() (first error) {
	for _, s := range all {
		first = cmp.Or(first, s.err, s.Writer.Close())
	}
	return first
}
