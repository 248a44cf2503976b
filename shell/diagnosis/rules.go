// Package diagnosis says what it means that a command failed, or that the container engine did.
package diagnosis

import (
	"slices"
	"time"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/packs"
)

// Rules say what failures mean: the file's first, the built-in ones after them.
type Rules struct {
	List    []classify.Rule
	retries map[string]engine.Retry // of the rules that say how often they are tried again
}

// NewRules compiles the rules of a project and those of the packs: what a log means, also for whoever reads one by
// itself. See missing for the paths.
func NewRules(own []hclspec.FailureRule, named []string) (Rules, error) {
	r := Rules{retries: map[string]engine.Retry{}}
	var all []failure.Rule
	for _, f := range own {
		all = append(all, f.Rule)
	}
	builtin, err := packs.Rules()
	if err != nil {
		return r, err
	}
	for _, f := range slices.Concat(all, missing(named), builtin) {
		pattern, err := f.Pattern()
		if err != nil {
			return r, err
		}
		r.List = append(r.List, classify.Rule{Rule: f, Pattern: pattern})
		if _, known := r.retries[f.Name]; f.Attempts > 0 && !known {
			r.retries[f.Name] = engine.Retry{Attempts: f.Attempts, Backoff: max(f.Backoff, time.Millisecond)}
		}
	}
	return r, nil
}

// Retry is what the rule of a name says about trying again; nil: nothing.
func (r *Rules) Retry(name string) *engine.Retry {
	if retry, ok := r.retries[name]; ok {
		return &retry
	}
	return nil
}
