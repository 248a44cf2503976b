package diagnosis

import (
	"errors"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// ErrOwn is the cause of a failure for which the node's commands are the only witnesses: by their output, exit status
// or files.
var ErrOwn = errors.New("only the command tells of it")

// Own reports whether a failure has only the word of a command, which a candidate may give on purpose. In other
// failures the kernel or the container engine has seen the cause, such as a lack of memory.
func Own(f *engine.Failure) bool { return errors.Is(f.Err, ErrOwn) }

// NoRoom returns the failure of a member of a block that found the disk full. The member may have filled the disk
// itself.
func NoRoom(subject string, err error) *engine.Failure {
	return &engine.Failure{Err: errors.Join(ErrOwn, err), Failure: failure.Failure{Class: failure.Infra,
		Rule: engine.DiskFull, Stage: "run", Subject: subject, Message: err.Error()}}
}

// Charged makes a failure the member's that happened between the start of the member and the admission of its output,
// whatever the cause. A full disk is not charged: other programs may have filled it.
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
