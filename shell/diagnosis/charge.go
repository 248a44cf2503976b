package diagnosis

import (
	"errors"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// ErrOwn is the cause of a failure of which only the commands of a node tell: by their output, by how they ended, or by
// what they left.
var ErrOwn = errors.New("only the command tells of it")

// Own reports whether a failure rests on what a command said or left, which a candidate may do on purpose. Nobody else
// has seen its cause, as the kernel sees an end for want of memory, or the container engine its own.
func Own(f *engine.Failure) bool { return errors.Is(f.Err, ErrOwn) }

// NoRoom is the failure of a member of a block that found no room on the disk, which it may have filled itself.
func NoRoom(subject string, err error) *engine.Failure {
	return &engine.Failure{Err: errors.Join(ErrOwn, err), Failure: failure.Failure{Class: failure.Infra,
		Rule: engine.DiskFull, Stage: "run", Subject: subject, Message: err.Error()}}
}

// Charged says of an error from the start of a member of a block until its output was taken over that it is the
// member's, also where nothing else is known of it. A full disk may be full of other things.
func Charged(subject string, err error) error {
	f, ok := errors.AsType[*engine.Failure](err)
	switch {
	case ok:
		f.Subject = subject
	case err != nil && !failure.NoRoom(err):
		return &engine.Failure{Err: errors.Join(ErrOwn, err), Failure: failure.Failure{Class: failure.Infra,
			Stage: "run", Subject: subject, Message: err.Error()}}
	}
	return err
}
