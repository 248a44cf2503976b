// Package diagram writes the graph of a plan in the formats of other programs.
package diagram

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/forecast"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
)

// edges calls f for each pair of steps where the second waits for the first.
func edges(steps []*engine.Step, f func(from, to *engine.Node)) {
	in := map[string]bool{}
	for _, st := range steps {
		in[st.Node.Address] = true
	}
	for _, st := range steps {
		seen := map[string]bool{}
		for _, dep := range forecast.Waits(st.Node) {
			if in[dep.Address] && !seen[dep.Address] {
				seen[dep.Address] = true
				f(dep, st.Node)
			}
		}
	}
}

// DOT writes the graph for Graphviz. The style of a box is the action of its step.
func DOT(w io.Writer, steps []*engine.Step) error {
	var b strings.Builder
	b.WriteString("digraph benchgraph {\n  rankdir = LR;\n  node [shape = box];\n")
	styles := map[engine.Action]string{engine.Run: "bold", engine.Cached: "solid", engine.Skip: "dotted",
		engine.Blocked: "dashed"}
	for _, st := range steps {
		fmt.Fprintf(&b, "  %s [style = %s, tooltip = %s];\n", quote(st.Node.Address), styles[st.Action],
			quote(string(st.Action)+": "+st.Reason))
	}
	edges(steps, func(from, to *engine.Node) {
		fmt.Fprintf(&b, "  %s -> %s;\n", quote(from.Address), quote(to.Address))
	})
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// quote returns text as a quoted string of DOT.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(view.Clean(s)) + `"`
}

// Mermaid writes the graph as a flowchart of Mermaid.
func Mermaid(w io.Writer, steps []*engine.Step) error {
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

// JSON writes the graph as a document with its critical path.
func JSON(w io.Writer, steps, critical []*engine.Step) error {
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
