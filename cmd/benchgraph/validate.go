package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/hclspec"
)

func (a *app) validate() cli.Command {
	asJSON := false
	return cli.Command{
		Name: "validate", Summary: "report all mistakes of the file with their places",
		Flags: func(fs *flag.FlagSet) { a.jsonFlag(fs, &asJSON) },
		Run:   func(context.Context, []string) error { return a.runValidate(asJSON) },
	}
}

// validation is the outcome of validate, as JSON.
type validation struct {
	Format      string            `json:"format"`
	Valid       bool              `json:"valid"`
	Files       []string          `json:"files"` // below the project's directory, the root file first
	Commits     int               `json:"commits"`
	Candidates  int               `json:"candidates"`
	Benchmarks  int               `json:"benchmarks"`
	Diagnostics []view.Diagnostic `json:"diagnostics"`
}

func (a *app) runValidate(asJSON bool) error {
	p, err := a.place()
	if err != nil {
		return err
	}
	o, err := a.pinned(p)
	if err != nil {
		return err
	}
	o.Strict = true
	spec, files, diags := hclspec.Load(o)
	var mistakes error
	if diags.HasErrors() {
		mistakes = &diagError{diags, files}
	}
	if asJSON {
		doc := validation{Format: view.Format, Valid: mistakes == nil, Files: []string{},
			Diagnostics: view.Diagnostics(diags)}
		if spec != nil {
			doc.Files, doc.Commits, doc.Candidates, doc.Benchmarks = spec.Files, len(spec.Commits),
				len(spec.Candidates), len(spec.Benchmarks)
		}
		return errors.Join(mistakes, view.JSON(a.stdout, doc))
	}
	if mistakes != nil {
		return mistakes
	}
	a.printDiags(diags, files)
	name := filepath.Join(p.dir, spec.Files[0])
	fmt.Fprintf(a.stdout, "Valid: %s (%s, %s, %s, %s).\n", view.Clean(name), view.Count(len(spec.Files), "file"),
		view.Count(len(spec.Commits), "commit"), view.Count(len(spec.Candidates), "candidate"),
		view.Count(len(spec.Benchmarks), "benchmark"))
	return nil
}
