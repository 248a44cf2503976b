package main

import (
	"context"
	"flag"
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/pick"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
)

// selection has the flags that select nodes.
type selection struct {
	Targets     cli.List `json:"target,omitempty"`
	Excludes    cli.List `json:"exclude,omitempty"`
	Replaces    cli.List `json:"replace,omitempty"`
	RetryFailed bool     `json:"retry_failed,omitempty"`

	hits map[string]bool // patterns that matched something
	seen []string        // addresses that were compared with patterns
}

func (s *selection) flags(fs *flag.FlagSet) {
	fs.Var(&s.Targets, "target", "plan only `ADDRESS` and the nodes that it needs; globs and repetition are allowed")
	fs.Var(&s.Excludes, "exclude", "leave out `ADDRESS` and the nodes that need it")
	fs.Var(&s.Replaces, "replace", "run `ADDRESS` even if it is up to date")
	s.retryFlag(fs)
}

func (s *selection) retryFlag(fs *flag.FlagSet) {
	fs.BoolVar(&s.RetryFailed, "retry-failed", false, "run nodes again that failed before")
}

// everything reports whether the selection is the whole plan.
func (s *selection) everything() bool {
	return len(s.Targets)+len(s.Excludes)+len(s.Replaces) == 0 && !s.RetryFailed
}

// typed checks the patterns and returns them.
func (s *selection) typed() ([]string, error) {
	_, err := s.options()
	return slices.Concat(s.Targets, s.Excludes, s.Replaces), err
}

// options checks the patterns, and returns them as options of a plan.
func (s *selection) options() (campaign.PlanOptions, error) {
	o := campaign.PlanOptions{RetryFailed: s.RetryFailed}
	s.hits = map[string]bool{}
	for _, list := range []struct {
		flag     string
		patterns cli.List
		match    *func(string) bool
	}{{"target", s.Targets, &o.Target}, {"exclude", s.Excludes, &o.Exclude}, {"replace", s.Replaces, &o.Replace}} {
		if len(list.patterns) == 0 {
			continue
		}
		for i, p := range list.patterns {
			list.patterns[i] = pick.Quoted(p)
			if _, err := hclspec.MatchAddress(list.patterns[i], "kind.name"); err != nil {
				return o, pick.Malformed(fmt.Errorf("-%s: %w", list.flag, err))
			}
		}
		*list.match = s.matcher(list.patterns)
	}
	return o, nil
}

func (s *selection) matcher(patterns cli.List) func(string) bool {
	return func(address string) bool {
		s.seen = append(s.seen, address)
		found := false
		for _, p := range patterns {
			if ok, _ := hclspec.MatchAddress(p, address); ok {
				s.hits[p], found = true, true
			}
		}
		return found
	}
}

// plan plans the selection, and makes sure that every pattern selects something.
func (s *session) plan(ctx context.Context, sel *selection) (*engine.Plan, campaign.PlanOptions, error) {
	o, err := sel.options()
	if err != nil {
		return nil, o, err
	}
	p, err := s.project.Plan(ctx, o)
	if err != nil {
		return nil, o, err
	}
	for _, list := range []cli.List{sel.Targets, sel.Excludes, sel.Replaces} {
		for _, pattern := range list {
			if !sel.hits[pattern] {
				return nil, o, pick.None(pattern, sel.seen)
			}
		}
	}
	sel.seen = nil
	for _, pattern := range sel.Replaces {
		if !slices.ContainsFunc(p.Steps, func(st engine.Step) bool {
			ok, _ := hclspec.MatchAddress(pattern, st.Node.Address)
			return ok
		}) {
			return nil, o, hint("Add the address to -target, or leave -target and -exclude out.",
				"-replace=%s: -target or -exclude leaves it out", pattern)
		}
	}
	for _, note := range s.project.Apart() {
		s.note("Note: %s", note)
	}
	s.store.Warn()
	return p, o, nil
}

// standing plans how everything stands: failures that the next apply would try again count, too.
func (s *session) standing(ctx context.Context) (*engine.Plan, error) {
	p, err := s.project.Plan(ctx, campaign.PlanOptions{AsIs: true})
	s.store.Warn()
	return p, err
}

// measured plans the project as on the class of machines that measured it, and notes a class other than this machine's.
func (s *session) measured(ctx context.Context) (*engine.Plan, error) {
	p, note, err := s.project.AsMeasured(ctx)
	s.store.Warn()
	if note != "" {
		s.note("Note: %s", view.Clean(note))
	}
	return p, err
}

// infeasible returns an error for a target none of whose nodes can ever run here.
func (sel *selection) infeasible(p *engine.Plan) error {
	for _, pattern := range sel.Targets {
		never, other := "", false
		for i := range p.Steps {
			if ok, _ := hclspec.MatchAddress(pattern, p.Steps[i].Node.Address); !ok {
				continue
			}
			if p.Steps[i].Never {
				never = cause(p, &p.Steps[i]).Reason
			} else {
				other = true
			}
		}
		if never != "" && !other {
			return &infeasibleError{pattern, never}
		}
	}
	return nil
}

// cause follows the dependencies of a step that can never run to the first such step.
func cause(p *engine.Plan, step *engine.Step) *engine.Step {
	for _, dep := range step.Node.Needs {
		if s, ok := p.Step(dep.Address); ok && s.Never {
			return cause(p, s)
		}
	}
	return step
}
