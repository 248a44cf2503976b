// Package diagnosis classifies failures of commands and of the container engine.
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

// Rules are the rules for failures: the file's first, then the built-in ones.
type Rules struct {
	List    []classify.Rule
	retries map[string]engine.Retry // by name, of rules with attempts
}

// NewRules compiles the rules of a project and of the packs. Readers of a single log use them, too. See missing for
// named.
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

// Retry returns the retries that a rule declares; nil if it declares none.
func (r *Rules) Retry(name string) *engine.Retry {
	if retry, ok := r.retries[name]; ok {
		return &retry
	}
	return nil
}
