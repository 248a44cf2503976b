package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
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
		Long: "With -critical-path, only the longest chain of what is to be run: nothing shortens an apply but " +
			"shortening it.",
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
	s, err := a.open(ctx, access{offline: true})
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
	critical := view.CriticalPath(p)
	if o.critical {
		steps = critical
	}
	switch o.format {
	case "json":
		return graphJSON(a.stdout, steps, critical)
	case "mermaid":
		return graphMermaid(a.stdout, steps)
	}
	return graphDOT(a.stdout, steps)
}

// edges calls f for each pair of steps of which the second waits for the first.
func edges(steps []*engine.Step, f func(from, to *engine.Node)) {
	in := map[string]bool{}
	for _, st := range steps {
		in[st.Node.Address] = true
	}
	for _, st := range steps {
		seen := map[string]bool{}
		for _, dep := range view.Waits(st.Node) {
			if in[dep.Address] && !seen[dep.Address] {
				seen[dep.Address] = true
				f(dep, st.Node)
			}
		}
	}
}

func graphDOT(w io.Writer, steps []*engine.Step) error {
	var b strings.Builder
	b.WriteString("digraph benchgraph {\n  rankdir = LR;\n  node [shape = box];\n")
	styles := map[engine.Action]string{engine.Run: "bold", engine.Cached: "solid", engine.Skip: "dotted",
		engine.Blocked: "dashed"}
	for _, st := range steps {
		fmt.Fprintf(&b, "  %s [style = %s, tooltip = %s];\n", dotQuote(st.Node.Address), styles[st.Action],
			dotQuote(string(st.Action)+": "+st.Reason))
	}
	edges(steps, func(from, to *engine.Node) {
		fmt.Fprintf(&b, "  %s -> %s;\n", dotQuote(from.Address), dotQuote(to.Address))
	})
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(view.Clean(s)) + `"`
}

func graphMermaid(w io.Writer, steps []*engine.Step) error {
	var b strings.Builder
	b.WriteString("graph LR\n")
	ids := map[string]string{}
	for i, st := range steps {
		id := "n" + strconv.Itoa(i)
		ids[st.Node.Address] = id
		// Mermaid's own escapes: entities with # instead of &.
		label := strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">",
			"#gt;").Replace(view.Clean(st.Node.Address))
		fmt.Fprintf(&b, "  %s[\"%s\"]:::%s\n", id, label, st.Action)
	}
	edges(steps, func(from, to *engine.Node) { fmt.Fprintf(&b, "  %s --> %s\n", ids[from.Address], ids[to.Address]) })
	b.WriteString("  classDef run stroke-width:3px\n  classDef blocked stroke-dasharray:6\n  classDef skip " +
		"stroke-dasharray:2\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func graphJSON(w io.Writer, steps, critical []*engine.Step) error {
	type nodeDoc struct {
		Address  string        `json:"address"`
		Kind     string        `json:"kind"`
		Action   engine.Action `json:"action"`
		Place    string        `json:"place"`
		Estimate float64       `json:"estimate_s"`
	}
	type edgeDoc struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	nodes, list, path := []nodeDoc{}, []edgeDoc{}, []string{}
	for _, st := range steps {
		nodes = append(nodes, nodeDoc{st.Node.Address, st.Node.Kind, st.Action, st.Node.Place, st.Estimate.Seconds()})
	}
	edges(steps, func(from, to *engine.Node) { list = append(list, edgeDoc{from.Address, to.Address}) })
	for _, st := range critical {
		path = append(path, st.Node.Address)
	}
	return view.JSON(w, map[string]any{"format": view.Format, "nodes": nodes, "edges": list, "critical_path": path})
}
