package shell

import (
	"fmt"
	"regexp"
	"time"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/packs"
)

// Rules say what failures mean: the file's first, the built-in ones after them.
type Rules struct {
	List    []metrics.Rule
	retries map[string]engine.Retry // of the rules that say how often they are tried again
}

// NewRules compiles the rules of a project and those of the packs: what a log means, also for whoever reads one by
// itself.
func NewRules(own []hclspec.Failure) (Rules, error) {
	r := Rules{retries: map[string]engine.Retry{}}
	var all []packs.Failure
	for _, f := range own {
		all = append(all, packs.Failure{Name: f.Address.Name, Match: f.Match, Stages: f.Stages, Class: f.Class,
			Remedy: f.Remedy, Attempts: f.Attempts, Backoff: f.Backoff, Wrapper: f.Wrapper})
	}
	builtin, err := packs.Failures()
	if err != nil {
		return r, err
	}
	for _, f := range append(all, builtin...) {
		if err := r.add(f); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *Rules) add(f packs.Failure) error {
	match, err := regexp.Compile(f.Match)
	if err != nil {
		return fmt.Errorf("failure rule %s: %w", f.Name, err)
	}
	r.List = append(r.List, metrics.Rule{Name: f.Name, Match: match, Stages: f.Stages, Class: f.Class, Remedy: f.Remedy,
		Wrapper: f.Wrapper})
	if _, known := r.retries[f.Name]; f.Attempts > 0 && !known {
		r.retries[f.Name] = engine.Retry{Attempts: f.Attempts, Backoff: max(f.Backoff, time.Millisecond)}
	}
	return nil
}

// retry is what the rule of a name says about trying again; nil: nothing.
func (r *Rules) retry(name string) *engine.Retry {
	if retry, ok := r.retries[name]; ok {
		return &retry
	}
	return nil
}
