package main

import (
	"context"
	"errors"

	"github.com/benchgraph/benchgraph/cache/shared"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/repro"
)

func (a *app) repro() cli.Command {
	return cli.Command{
		Name: "repro", Args: "ADDR", Min: 1, Max: 1,
		Summary: "print a script that repeats by hand what the last attempt at a node ran",
		Run:     func(ctx context.Context, args []string) error { return a.runRepro(ctx, args[0]) },
	}
}

func (a *app) runRepro(ctx context.Context, text string) error {
	s, err := a.open(ctx, access{about: []string{text}, offline: true, look: &shared.Look{}})
	if err != nil {
		return err
	}
	defer s.close()
	p, st, err := s.one(ctx, text)
	if err != nil {
		return err
	}
	script, err := repro.Sources{Store: s.store, Journal: s.journal, LogOf: s.logOf}.Script(ctx, p, st)
	if missing, ok := errors.AsType[*repro.Missing](err); ok {
		return hint(missing.Remedy, "%w", missing)
	}
	if err != nil {
		return err
	}
	return a.raw([]byte(script))
}
