package mirror

import (
	"errors"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/source/git/command"
)

// FailureOf converts an error of git. Damaged or missing objects are failures of the machine (infra).
func FailureOf(err error) failure.Failure {
	f := failure.Failure{Class: failure.Permanent, Rule: "git", Stage: "fetch", Message: err.Error()}
	if fetch, ok := errors.AsType[*FetchError](err); ok {
		f.Class, f.Evidence, f.Remedy = fetch.Class, fetch.Evidence, fetch.Remedy
	}
	line, remedy := command.Damaged(err)
	if _, lacks := errors.AsType[*MissingObjects](err); lacks || line != "" {
		f.Class, f.Evidence, f.Remedy = failure.Infra, line, remedy
	}
	return f
}
