package output

import (
	"errors"
	"io"
	"sync/atomic"
)

// ErrTooLong is the reason for which a Limit ends a command that prints too much.
var ErrTooLong = errors.New("the command printed too much")

// Unwritten is the error for output that could not be written.
type Unwritten struct{ Err error }

func (e *Unwritten) Error() string { return e.Err.Error() }

func (e *Unwritten) Unwrap() error { return e.Err }

// Limit bounds the output of one command, in bytes of all its streams together.
type Limit struct {
	most    int64
	end     func(why error)
	printed atomic.Int64
}

// NewLimit returns a Limit that calls end with ErrTooLong once a command has printed more than most bytes, and with an
// *Unwritten once its output cannot be written. Otherwise a server whose lines are lost would be waited for.
func NewLimit(most int64, end func(why error)) *Limit { return &Limit{most: most, end: end} }

// Writer returns a writer to w for a stream of the command. Bytes beyond the limit are discarded.
func (l *Limit) Writer(w io.Writer) io.Writer { return limited{l, w} }

type limited struct {
	*Limit
	w io.Writer
}

func (w limited) Write(p []byte) (int, error) {
	if w.printed.Add(int64(len(p))) > w.most {
		w.end(ErrTooLong)
		return len(p), nil
	}
	n, err := w.w.Write(p)
	if err != nil {
		err = &Unwritten{err}
		w.end(err)
	}
	return n, err
}
