// Package logfile opens logs that the command line names.
package logfile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
)

// mostPiped is how much of a pipe is read: it is held in memory, since a log is read more than once.
const mostPiped = 1 << 30

// Opener returns how a log is opened, as often as is needed: a file, or what a pipe or a device holds until its end.
// The name - is that of standard input. When ctx is done, waiting and reading end with its cause.
func Opener(ctx context.Context, name string, stdin io.Reader) (func() (io.ReadCloser, error), error) {
	if info, err := os.Stat(name); name != "-" && (err != nil || info.Mode().IsRegular() || info.IsDir()) {
		return func() (io.ReadCloser, error) {
			f, err := os.Open(name)
			return endable{ctx, f}, err
		}, nil
	}
	var text []byte
	read := make(chan error, 1)
	go func() { // both opening and reading wait for who writes
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
		text, err = io.ReadAll(io.LimitReader(from, mostPiped+1))
		read <- err
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case err := <-read:
		if err == nil && len(text) > mostPiped {
			err = errors.New("it has more than 1 GiB, and is no file")
		}
		return func() (io.ReadCloser, error) {
			return endable{ctx, io.NopCloser(bytes.NewReader(text))}, nil
		}, err
	}
}

// endable is a log whose reading ends when the command is to end.
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
