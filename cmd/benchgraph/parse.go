package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/logfile"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/metrics/formats"
	"github.com/benchgraph/benchgraph/shell/diagnosis"
)

type parseFlags struct {
	format string
	json   bool
}

func (a *app) parse() cli.Command {
	o := &parseFlags{}
	return cli.Command{
		Name: "parse", Args: "FILE", Min: 1, Max: 1,
		Summary: "print the samples, warnings and failure that benchgraph reads from a log; - is standard input",
		Flags: func(fs *flag.FlagSet) {
			// a regex needs definitions, which only a file has
			names := slices.DeleteFunc(formats.Names(), func(format string) bool { return format == "regex" })
			fs.StringVar(&o.format, "format", "auto", "`FORMAT`: "+strings.Join(names, ", "))
			a.jsonFlag(fs, &o.json)
		},
		Run: func(ctx context.Context, args []string) error { return a.runParse(ctx, o, args[0]) },
	}
}

func (a *app) runParse(ctx context.Context, o *parseFlags, name string) error {
	open, err := logfile.Opener(ctx, name, a.stdin)
	if err != nil {
		return hint("Give a file, or a pipe that ends.", "parse %s: %w", name, err)
	}
	rules, err := a.rules()
	if err != nil {
		return err
	}
	log, err := formats.ParseLog(o.format, open, rules.List)
	if err != nil {
		return fmt.Errorf("parse %s: %w", name, err)
	}
	if o.json {
		return view.JSON(a.stdout, struct {
			Format string `json:"format"`
			formats.Log
		}{view.Format, log})
	}
	view.Parsed(a.stdout, log)
	return nil
}

// rules returns the failure rules: the rules of the project, if there is a valid one, and then the built-in rules.
func (a *app) rules() (diagnosis.Rules, error) {
	p, err := a.place()
	if err != nil {
		return diagnosis.NewRules(nil, nil)
	}
	options, err := a.options(p, nil)
	if err != nil {
		return diagnosis.Rules{}, err
	}
	var own []hclspec.FailureRule
	if spec, _, _ := hclspec.Load(options); spec != nil {
		own = spec.Failures
	}
	return diagnosis.NewRules(own, nil)
}
