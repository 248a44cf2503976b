package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// lentFor is how long the credentials of a job last. The time in the queue counts, and is not known beforehand; no
// server lends credentials for longer.
const lentFor = 12 * time.Hour

// lend returns credentials for the shared store that can write the named objects; nil if workers have credentials of
// their own.
func (x *Executor) lend(ctx context.Context, name string, writes ...string) (*bucket.Login, error) {
	role := x.Project.Shared.JobRole
	lender, ok := x.Bucket.(bucket.Lender)
	if role == "" || !ok {
		return nil, nil
	}
	login, err := lender.Lend(ctx, bucket.Loan{Role: role, Name: name, For: lentFor, Writes: writes})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &engine.Failure{Err: err, Failure: failure.Failure{Class: failure.Infra,
			Rule: "credentials", Stage: "submit",
			Message: fmt.Sprintf("the server of the shared store lends no credentials for %s: %v", role, err),
			Remedy: "let your user assume the role, and let sessions of the role last 12 hours; or remove job_role " +
				"from the store, and give the nodes credentials of their own"}}
	}
	return &login, nil
}

// unusable makes err a failure with a remedy if the shared store refuses a request for a known reason, such as
// credentials that have expired meanwhile. A job is not lost by that: the next attempt, or the next apply, follows the
// job or takes its result.
func unusable(err error) error {
	remedy := bucket.Known(err)
	if _, ok := errors.AsType[*engine.Failure](err); ok || remedy == "" {
		return err
	}
	return &engine.Failure{Err: err, Retry: &engine.Retry{Attempts: 4, Backoff: 15 * time.Second},
		Failure: failure.Failure{Class: failure.Infra, Rule: "store_unusable", Stage: "run", Message: err.Error(),
			Remedy: remedy}}
}
