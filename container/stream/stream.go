// Package stream carries the output and the input of programs in containers. It compares the output with the engine's
// log to detect loss.
package stream

import (
	"io"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/pkg/stdcopy"
)

// Stream carries the output and the input of a program in a container.
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

// Feed sends all of stdin, and then its end.
func (s *Stream) Feed(stdin io.Reader) {
	_, _ = io.Copy(s.conn.Conn, stdin) // it is no failure if the program does not read everything
	_ = s.conn.CloseWrite()
}

// Close closes the connection.
func (s *Stream) Close() { s.conn.Close() }
