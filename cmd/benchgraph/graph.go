package main

import (
	"context"
	"flag"
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/cache/shared"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/diagram"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/forecast"
	"github.com/benchgraph/benchgraph/engine"
)

type graphFlags struct {
	selection
	format   string
	critical bool
}

func (a *app) graph() cli.Command {
	o := &graphFlags{}
	return cli.Command{
		Name: "graph", Summary: "print the graph of nodes as DOT, Mermaid or JSON",
		Long: "With -critical-path, only the longest chain of nodes to run: an apply gets shorter only " +
			"if this chain does.",
		Flags: func(fs *flag.FlagSet) {
			fs.StringVar(&o.format, "format", "dot", "`FORMAT`: dot, mermaid or json")
			fs.BoolVar(&o.critical, "critical-path", false, "print only the longest path of nodes to run")
			fs.Var(&o.Targets, "target", "plan only `ADDRESS` and the nodes that it needs")
			fs.Var(&o.Excludes, "exclude", "leave out `ADDRESS` and the nodes that need it")
		},
		Run: func(ctx context.Context, _ []string) error { return a.runGraph(ctx, o) },
	}
}

func (a *app) runGraph(ctx context.Context, o *graphFlags) error {
	formats := []string{"dot", "mermaid", "json"}
	if !slices.Contains(formats, o.format) {
		return &cli.UsageError{Message: fmt.Sprintf("graph: no format %q%s", o.format, cli.Suggest(o.format, formats)),
			Remedy: "name dot, mermaid or json"}
	}
	about, err := o.typed()
	if err != nil {
		return err
	}
	s, err := a.open(ctx, access{about: about, offline: true, look: &shared.Look{}})
	if err != nil {
		return err
	}
	defer s.close()
	p, _, err := s.plan(ctx, &o.selection)
	if err != nil {
		return err
	}
	steps := make([]*engine.Step, len(p.Steps))
	for i := range p.Steps {
		steps[i] = &p.Steps[i]
	}
	critical := forecast.CriticalPath(p)
	if o.critical {
		steps = critical
	}
	switch o.format {
	case "json":
		return diagram.JSON(a.stdout, steps, critical)
	case "mermaid":
		return diagram.Mermaid(a.stdout, steps)
	}
	return diagram.DOT(a.stdout, steps)
}
