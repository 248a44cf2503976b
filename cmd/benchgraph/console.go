package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/hclspec"
)

func (a *app) console() cli.Command {
	return cli.Command{
		Name: "console", Args: "[EXPRESSION...]", Max: -1, Summary: "evaluates expressions, from the arguments or a line at a time from standard input",
		Run: func(ctx context.Context, args []string) error { return a.runConsole(ctx, args) },
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
	if len(args) > 0 {
		for _, expr := range args {
			if err := a.evaluate(o, expr); err != nil {
				return err
			}
		}
		return nil
	}
	_, tty := terminal(a.stdout)
	lines := bufio.NewScanner(a.stdin)
	lines.Buffer(nil, 1<<20)
	var last error
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
		if last = a.evaluate(o, lines.Text()); last != nil && tty {
			a.explain(ctx, last) // a mistake at a prompt is no reason to go
			last = nil
		} else if last != nil {
			return last
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
