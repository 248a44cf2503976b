package main

import (
	"cmp"
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
			// a regex needs the definitions of a file
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
	a.parseText(log)
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

func (a *app) parseText(log formats.Log) {
	fmt.Fprintf(a.stdout, "%s, %d samples\n", cmp.Or(log.Detected, "no format that is known"), len(log.Samples))
	var rows [][]string
	for _, s := range log.Samples {
		rows = append(rows, []string{view.Clean(s.Metric), fmt.Sprint(s.Value), view.Clean(s.Unit)})
	}
	view.Table(a.stdout, "  ", rows)
	for _, w := range log.Warnings {
		if w.Line > 0 {
			fmt.Fprintf(a.stdout, "warning: line %d: %s\n", w.Line, view.Clean(w.Text))
		} else {
			fmt.Fprintf(a.stdout, "warning: %s\n", view.Clean(w.Text))
		}
	}
	if log.Detected == "" && log.Failure == nil {
		fmt.Fprintln(a.stdout, `remedy: give the format with -format, or read the numbers with metric blocks: `+
			`metric "NAME" { match = "LABEL: ([0-9.]+)" }`)
	}
	if f := log.Failure; f != nil {
		at := ""
		if f.Line > 0 { // a result in JSON is not read by lines
			at = fmt.Sprintf(", line %d", f.Line)
		}
		fmt.Fprintf(a.stdout, "failure: %s (%s)%s: %s\n", f.Rule, f.Class, at, view.Clean(f.Evidence))
		if f.Remedy != "" {
			fmt.Fprintf(a.stdout, "remedy: %s\n", view.Clean(f.Remedy))
		}
	}
}
