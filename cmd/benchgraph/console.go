package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/hclspec"
)

func (a *app) console() cli.Command {
	return cli.Command{
		Name: "console", Args: "[EXPRESSION...]", Max: -1,
		Summary: "evaluate expressions, from the arguments or from the lines of standard input",
		Run:     func(ctx context.Context, args []string) error { return a.runConsole(ctx, args) },
	}
}

func (a *app) runConsole(ctx context.Context, args []string) error {
	p, err := a.place()
	if err != nil {
		return err
	}
	o, err := a.pinned(p)
	if err != nil {
		return err
	}
	var last error // earlier ones were shown at once, so that a mistake does not stop the expressions after it
	try := func(expr string) {
		err := a.evaluate(o, expr)
		if err != nil && last != nil {
			a.explain(ctx, last)
		}
		last = cmp.Or(err, last)
	}
	if len(args) > 0 {
		for _, expr := range args {
			try(expr)
		}
		return last
	}
	_, tty := terminal(a.stdout)
	lines := bufio.NewScanner(a.stdin)
	lines.Buffer(nil, 1<<20)
	for {
		if tty {
			fmt.Fprint(a.stdout, "> ")
		}
		if !lines.Scan() || strings.TrimSpace(lines.Text()) == "exit" {
			break
		}
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		try(lines.Text())
		if tty { // shown at once, where it was made
			a.explain(ctx, last)
			last = nil
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	return last
}

func (a *app) evaluate(o hclspec.Options, expr string) error {
	value, files, diags := hclspec.Eval(o, expr)
	if diags.HasErrors() {
		return &diagError{diags, files}
	}
	return a.raw([]byte(value + "\n"))
}
