package main

import (
	"context"
	"flag"
	"fmt"
	"slices"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
)

func (a *app) query() cli.Command {
	asJSON := false
	return cli.Command{
		Name: "query", Args: "deps|rdeps ADDR", Min: 2, Max: 2, Summary: "what a node needs, or what needs it, all the way",
		Flags: func(fs *flag.FlagSet) { a.jsonFlag(fs, &asJSON) },
		Run: func(ctx context.Context, args []string) error {
			return a.runQuery(ctx, args[0], args[1], asJSON)
		},
	}
}

func (a *app) runQuery(ctx context.Context, what, text string, asJSON bool) error {
	if known := []string{"deps", "rdeps"}; !slices.Contains(known, what) {
		return &cli.UsageError{
			Message: fmt.Sprintf("query knows no %q%s", what, cli.Suggest(what, known)), Remedy: "write query deps ADDR, or query rdeps ADDR",
		}
	}
	s, err := a.open(ctx, access{offline: true, recall: recallNodes})
	if err != nil {
		return err
	}
	defer s.close()
	p, err := s.standing(ctx)
	if err != nil {
		return err
	}
	start, err := node(p, text)
	if err != nil {
		return err
	}
	next := map[string][]string{}
	for i := range p.Steps {
		n := p.Steps[i].Node
		for _, list := range [][]*engine.Node{n.Needs, n.Order, n.After} {
			for _, dep := range list {
				if what == "deps" {
					next[n.Address] = append(next[n.Address], dep.Address)
				} else {
					next[dep.Address] = append(next[dep.Address], n.Address)
				}
			}
		}
	}
	reached := map[string]bool{}
	for open := []string{start.Node.Address}; len(open) > 0; {
		address := open[len(open)-1]
		open = open[:len(open)-1]
		for _, other := range next[address] {
			if !reached[other] {
				reached[other] = true
				open = append(open, other)
			}
		}
	}
	found := []string{}
	for i := range p.Steps { // in the order of the plan
		if address := p.Steps[i].Node.Address; reached[address] {
			found = append(found, address)
		}
	}
	if asJSON {
		return view.JSON(a.stdout, map[string]any{"format": view.Format, "address": start.Node.Address, "nodes": found})
	}
	for _, address := range found {
		fmt.Fprintln(a.stdout, view.Clean(address))
	}
	return nil
}
