package main

import (
	"context"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/repro"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
)

func (a *app) repro() cli.Command {
	return cli.Command{
		Name: "repro", Args: "ADDR", Min: 1, Max: 1, Summary: "print a script that repeats by hand the work of a node",
		Run: func(ctx context.Context, args []string) error { return a.runRepro(ctx, args[0]) },
	}
}

func (a *app) runRepro(ctx context.Context, text string) error {
	s, err := a.open(ctx, access{offline: true})
	if err != nil {
		return err
	}
	defer s.close()
	p, st, err := s.one(ctx, text)
	if err != nil {
		return err
	}
	at, err := hclspec.ParseAddress(st.Node.Address)
	if err != nil {
		return err
	}
	project := repro.Project{Spec: s.project.Spec, Lock: s.project.Lock,
		Stored: func(at hclspec.Address) (string, bool) {
			dep, ok := p.Step(at.String())
			if !ok {
				return "", false
			}
			meta, ok := dep.Stored()
			if !ok {
				return "", false
			}
			entry, err := s.store.Get(ctx, meta.Key, false)
			return entry.Dir, err == nil
		}, LeftOut: func(at hclspec.Address) bool {
			st, ok := p.Step(at.String())
			return ok && st.Action == engine.Skip
		}}
	script, err := project.Script(at)
	if err != nil {
		return hint("benchgraph show "+text+" tells what is known of it.", "%w", err)
	}
	return a.raw([]byte(script))
}
