package mask

import (
	"cmp"
	"io"
)

// Sinks are the writers of a program's output.
type Sinks []*sink

// sink is a Writer that remembers the first write error.
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

// Open adds a sink that writes to w without the secrets.
func (all *Sinks) Open(w io.Writer, secrets []string) io.Writer {
	s := &sink{Writer: New(w, secrets)}
	*all = append(*all, s)
	return s
}

// Close writes the bytes that were held back, and returns the first write error.
func (all Sinks) Close() (first error) {
	for _, s := range all {
		first = cmp.Or(first, s.err, s.Writer.Close())
	}
	return first
}
