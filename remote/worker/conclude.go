package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/remote/objects"
)

// Writable returns why the outcome of a job cannot be put into the bucket of the shared store; nil if it can. A job
// that could not leave its result measures nothing. Credentials that apply has lent can write the outcome. The object
// has a name of its own: another job of the same node may have left its outcome.
func Writable(ctx context.Context, r *remote.Request, b bucket.Bucket) error {
	if r.Login != nil {
		return nil
	}
	err := bucket.Probe(ctx, b, objects.Dir+r.Owner+"/probe-"+rand.Text())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // an apply has removed the object already
	}
	return err
}

// Conclude puts the result of the node into the shared store, and returns its digest. If there is none, it returns the
// reason: an *engine.Failure if the node itself has failed. p is the plan that was carried out.
func Conclude(ctx context.Context, r *remote.Request, p *engine.Plan, done *engine.Result, store remote.Sender) (
	digest string, err error) {
	if len(done.Failures) > 0 {
		f := &done.Failures[0]
		if f.Address == r.Address {
			return "", &engine.Failure{Failure: f.Failure}
		}
		return "", fmt.Errorf("input %s was made anew and failed: %s", f.Address, f.Failure.Text())
	}
	e, err := store.Get(ctx, r.Key, true)
	if st, ok := p.Step(r.Address); ok && errors.Is(err, cache.ErrMiss) {
		if same, stored := st.Stored(); stored { // this machine has measured the same work under another key
			e, err = store.Get(ctx, same.Key, true)
			e.Key, e.Text, e.Signature = st.Key, st.Text, "" // a new entry, made here
		}
	}
	if err != nil {
		return "", fmt.Errorf("%s was not run: %w", r.Address, err)
	}
	if _, err := store.Send(ctx, e, ""); err != nil { // the shared store may lack a result that this machine had
		return "", fmt.Errorf("the result could not be put into the shared store: %w", err)
	}
	return e.Digest, nil
}
