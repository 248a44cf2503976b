// Package logfile opens logs that the command line names.
package logfile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// mostPiped bounds the bytes that are read from a pipe: they are kept in memory, since a log is read more than once.
const mostPiped = 1 << 30

// Opener returns a function that opens a log any number of times: a file, or everything that a pipe or a device has
// until its end. The name - stands for standard input. When ctx is done, waiting and reading end with its cause.
func Opener(ctx context.Context, name string, stdin io.Reader) (func() (io.ReadCloser, error), error) {
	if info, err := os.Stat(name); name != "-" && (err != nil || info.Mode().IsRegular() || info.IsDir()) {
		return func() (io.ReadCloser, error) {
			f, err := os.Open(name)
			return endable{ctx, f}, err
		}, nil
	}
	var text []byte
	read := make(chan error, 1)
	go func() { // both opening and reading wait for the writer
		from := stdin
		if name != "-" {
			f, err := os.Open(name)
			if err != nil {
				read <- err
				return
			}
			defer f.Close()
			from = f
		}
		var err error
		text, err = fs.ReadAll(from, mostPiped)
		read <- err
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case err := <-read:
		if _, ok := errors.AsType[*fs.TooLong](err); ok {
			err = errors.New("it has more than 1 GiB, and is no file")
		}
		return func() (io.ReadCloser, error) {
			return endable{ctx, io.NopCloser(bytes.NewReader(text))}, nil
		}, err
	}
}

// endable is a log whose reading ends with a context.
type endable struct {
	ctx context.Context
	io.ReadCloser
}

func (r endable) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.ReadCloser.Read(b)
}
