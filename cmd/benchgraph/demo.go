package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/hclspec"
)

// demoFiles is a project that needs nothing but git, bash and awk. Its repository is a bundle, which
// testdata/demo/history makes.
//
//go:embed demo
var demoFiles embed.FS

func (a *app) demo() cli.Command {
	return cli.Command{
		Name: "demo", Args: "[DIR]", Max: 1,
		Summary: "measure two commits of a small program, and an agent's patches of it, in ten seconds",
		Long: "The project is written to DIR, by default benchgraph-demo, and is for playing with: change a patch " +
			"or the file, and plan again.\n" +
			"It needs git, bash and awk.",
		Run: func(ctx context.Context, args []string) error {
			dir := "benchgraph-demo"
			if len(args) == 1 {
				dir = args[0]
			}
			return a.runDemo(ctx, a.below(dir))
		},
	}
}

func (a *app) runDemo(ctx context.Context, dir string) error {
	if fileExists(filepath.Join(dir, hclspec.RootFiles[0])) {
		return hint("Choose another directory, or go on there: benchgraph -chdir="+dir+" apply.",
			"demo: %s is there already", filepath.Join(dir, hclspec.RootFiles[0]))
	}
	files, err := fs.Sub(demoFiles, "demo")
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, files); err != nil {
		return hint("Choose another directory: benchgraph demo DIR.", "demo: %w", err)
	}
	a.chdir, a.file = dir, ""
	o := &applyFlags{keepGoing: true}
	o.limits(new(flag.FlagSet)) // sets their default values
	err = a.runApply(ctx, o, nil)
	if failed := (*failedError)(nil); errors.As(err, &failed) && failed.count == 1 {
		err = nil // the demo has a patch that makes the program wrong
	}
	if err == nil {
		a.note("One patch was there to be caught: it counts wrong.")
		a.note("The file: %s", filepath.Join(dir, hclspec.RootFiles[0]))
		a.note("The report: %s", filepath.Join(dir, "report", "report.html"))
		a.note("A second run does nothing: benchgraph -chdir=%s plan", dir)
	}
	return err
}
