package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/hclspec"
)

func (a *app) validate() cli.Command {
	return cli.Command{
		Name: "validate", Summary: "checks the file: all mistakes, in one pass, with their places",
		Run: func(context.Context, []string) error { return a.runValidate() },
	}
}

func (a *app) runValidate() error {
	p, err := a.place()
	if err != nil {
		return err
	}
	o, err := a.pinned(p)
	if err != nil {
		return err
	}
	spec, files, diags := hclspec.Load(o)
	if diags.HasErrors() {
		return &diagError{diags, files}
	}
	a.printDiags(diags, files)
	name := filepath.Join(p.dir, spec.Files[0])
	fmt.Fprintf(a.stdout, "Valid: %s (%d files, %d commits, %d candidates, %d benchmarks).\n",
		view.Clean(name), len(spec.Files), len(spec.Commits), len(spec.Candidates), len(spec.Benchmarks))
	return nil
}
