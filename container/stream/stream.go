// Package stream carries the output, and the input, of what runs in a container, and tells from the log of the engine
// whether all of the output has come.
package stream

import (
	"io"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/pkg/stdcopy"
)

// Stream carries the output, and the input, of what runs in a container.
type Stream struct {
	conn types.HijackedResponse
}

// New returns the Stream of a connection.
func New(conn types.HijackedResponse) *Stream { return &Stream{conn} }

// Copy copies both streams until they end. Their relative order is not known.
func (s *Stream) Copy(stdout, stderr io.Writer) error {
	_, err := stdcopy.StdCopy(stdout, stderr, s.conn.Reader)
	return err
}

// Feed passes all of stdin on, and then its end.
func (s *Stream) Feed(stdin io.Reader) {
	_, _ = io.Copy(s.conn.Conn, stdin) // a program that does not read to the end is no failure
	_ = s.conn.CloseWrite()
}

// Close breaks the stream off.
func (s *Stream) Close() { s.conn.Close() }
