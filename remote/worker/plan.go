// Package worker is the part of remote on the machine of a job: it plans and concludes the node of a request there.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/remote"
)

// Store is the shared store, see remote.Store.
type Store interface {
	Ask(ctx context.Context, key cache.Key) (cache.Entry, error)
	Puts() bool
}

// Planner plans one node and its dependencies, as *campaign.Project does.
type Planner interface {
	Part(ctx context.Context, choice json.RawMessage, address string, again bool) (*engine.Plan, error)
}

// Plan plans the node of the request on the machine of the worker. It asks the shared store for each result that would
// be made anew, since the index may not list it yet. wanted reports whether the store takes the result of a node. The
// error is an *engine.Failure if the node cannot run here.
func Plan(ctx context.Context, r *remote.Request, project Planner, store Store, wanted func(string) bool) (
	*engine.Plan, error) {
	asked := map[cache.Key]bool{r.Key: true}
	for {
		p, err := project.Part(ctx, r.Choice, r.Address, r.Round != "")
		if err != nil {
			return nil, err
		}
		if err := check(r, p, store.Puts()); err != nil {
			return nil, err
		}
		found := false
		for i := range p.Steps {
			if st := &p.Steps[i]; st.Action == engine.Run && !asked[st.Key] && wanted(st.Node.Address) {
				asked[st.Key] = true
				_, err := store.Ask(ctx, st.Key)
				if err != nil && !errors.Is(err, cache.ErrMiss) {
					return nil, fmt.Errorf("shared store: %s: %w", st.Node.Address, err)
				}
				found = found || err == nil
			}
		}
		if !found {
			return p, nil
		}
	}
}

// check returns why the node of the request cannot run as planned.
func check(r *remote.Request, p *engine.Plan, puts bool) error {
	refuse := func(remedy, format string, args ...any) error {
		return &engine.Failure{Failure: failure.Failure{Class: failure.Infra, Rule: "worker", Stage: "start",
			Message: "worker: " + fmt.Sprintf(format, args...), Remedy: remedy}}
	}
	st, ok := p.Step(r.Address)
	switch {
	case !ok:
		return refuse("Apply again.", "%s is not in the graph any more", r.Address)
	case st.Key != r.Key:
		return refuse("Apply again. If the project was not changed, the nodes of the cluster are not alike: "+
			"keep the jobs on one kind of nodes with constraint in the executor block.",
			"%s has another key here than the job was submitted with", r.Address)
	case !puts:
		return refuse("Name the file of a key of trust on the nodes with BENCHGRAPH_SIGNING_KEY, such as in setup.",
			"the result could not be put into the shared store: only entries that a key of trust signed are taken")
	case st.Action == engine.Blocked || st.Action == engine.Skip:
		remedy, why := obstacle(p, st)
		return refuse(remedy, "%s cannot run here: %s", r.Address, why)
	}
	return r.CheckNamed()
}

// obstacle returns why a node cannot run, with the address of the node that blocks it, and a remedy, which may be "".
func obstacle(p *engine.Plan, st *engine.Step) (remedy, why string) {
	why = st.Reason
	for _, dep := range slices.Concat(st.Node.Needs, st.Node.Order) {
		if s, ok := p.Step(dep.Address); ok && s.Action == st.Action {
			remedy, why = obstacle(p, s)
			if why == s.Reason {
				why = dep.Address + " " + why
			}
			return remedy, why
		}
	}
	if st.Node.Kind == "image" {
		remedy = "have setup of the executor block load Apptainer, or name the engine of the nodes (DOCKER_HOST)"
	}
	return remedy, why
}
