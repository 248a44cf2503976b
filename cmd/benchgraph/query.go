package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/benchgraph/benchgraph/cache/shared"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/pick"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
)

func (a *app) query() cli.Command {
	asJSON := false
	return cli.Command{
		Name: "query", Args: "deps|rdeps|changed [ADDR]", Min: 1, Max: 2,
		Summary: "list the nodes that a node needs, the nodes that need it, or the changed nodes",
		Long: "deps ADDR lists the nodes that a node needs, rdeps ADDR those that need it. changed lists the " +
			"nodes that\nhave a result under another key than their present one; explain shows the changes of each.",
		Flags: func(fs *flag.FlagSet) { a.jsonFlag(fs, &asJSON) },
		Run: func(ctx context.Context, args []string) error {
			known := map[string]int{"deps": 2, "rdeps": 2, "changed": 1}
			switch n, ok := known[args[0]]; {
			case !ok:
				return &cli.UsageError{
					Message: fmt.Sprintf("query knows no %q%s", args[0], cli.Suggest(args[0], sortedKeys(known))),
					Remedy:  "write query deps ADDR, query rdeps ADDR, or query changed"}
			case len(args) < n:
				return &cli.UsageError{Message: "query " + args[0] + " needs ADDR", Remedy: "try benchgraph help query"}
			case len(args) > n:
				return &cli.UsageError{Message: fmt.Sprintf("query %s: unexpected argument %q", args[0], args[n]),
					Remedy: "try benchgraph help query"}
			case n == 1:
				return a.runChanged(ctx, asJSON)
			}
			return a.runQuery(ctx, args[0], args[1], asJSON)
		},
	}
}

// runChanged lists the nodes that have a result under another key than their present one.
func (a *app) runChanged(ctx context.Context, asJSON bool) error {
	s, err := a.open(ctx, access{offline: true, look: &shared.Look{}})
	if err != nil {
		return err
	}
	defer s.close()
	p, err := s.standing(ctx)
	if err != nil {
		return err
	}
	found := []string{}
	for i := range p.Steps {
		if changes, _ := s.changes(ctx, &p.Steps[i]); len(changes) > 0 {
			found = append(found, p.Steps[i].Node.Address)
		}
	}
	return a.addresses(found, asJSON, map[string]any{})
}

// addresses prints addresses, one a line, or adds them to a JSON document.
func (a *app) addresses(found []string, asJSON bool, doc map[string]any) error {
	if asJSON {
		doc["format"], doc["nodes"] = view.Format, found
		return view.JSON(a.stdout, doc)
	}
	for _, address := range found {
		fmt.Fprintln(a.stdout, view.Clean(address))
	}
	return nil
}

func (a *app) runQuery(ctx context.Context, what, text string, asJSON bool) error {
	s, err := a.open(ctx, access{offline: true, recall: recallNodes})
	if err != nil {
		return err
	}
	defer s.close()
	p, err := s.standing(ctx)
	if err != nil {
		return err
	}
	start, err := pick.Node(p, text)
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
	return a.addresses(found, asJSON, map[string]any{"address": start.Node.Address})
}
