package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

type compareFlags struct {
	json    bool
	metric  string
	compare string
	allow   cli.List
}

func (a *app) compare() cli.Command {
	o := &compareFlags{}
	return cli.Command{
		Name: "compare", Args: "A B", Min: 2, Max: 2, Summary: "holds one candidate against another, by what is stored",
		Long: "A and B are candidates of one commit: 22d33bac/human 22d33bac/baseline. Positive effects mean that A is better.",
		Flags: func(fs *flag.FlagSet) {
			a.jsonFlag(fs, &o.json)
			fs.StringVar(&o.metric, "metric", "", "only this `METRIC`")
			fs.StringVar(&o.compare, "compare", "", "judge by the rules of the compare `ADDRESS`, where several judge the candidates")
			allowFlag(fs, &o.allow)
		},
		Run: func(ctx context.Context, args []string) error { return a.runCompare(ctx, o, args[0], args[1]) },
	}
}

func (a *app) runCompare(ctx context.Context, o *compareFlags, one, other string) error {
	s, err := a.open(ctx, access{offline: true, allow: o.allow})
	if err != nil {
		return err
	}
	defer s.close()
	var known []string
	for _, c := range s.project.Spec.Candidates {
		known = append(known, c.Key)
	}
	for _, name := range []string{one, other} {
		if !slices.Contains(known, name) {
			return hint("A candidate is COMMIT/VARIANT.", "there is no candidate %q%s", name, cli.Suggest(name, known))
		}
	}
	by, err := s.compareBlock(o.compare)
	if err != nil {
		return err
	}
	p, err := s.measured(ctx)
	if err != nil {
		return err
	}
	found, err := s.project.Pair(ctx, p, one, other, by)
	if err != nil {
		return err
	}
	for _, note := range found.Notes {
		s.note("%s", note)
	}
	rows := found.Rows
	if o.metric != "" {
		var metrics []string
		for _, row := range rows {
			metrics = append(metrics, row.Metric)
		}
		if !slices.Contains(metrics, o.metric) {
			return hint("Without -metric, all are shown.", "no metric %q was measured for both%s", o.metric, cli.Suggest(o.metric, metrics))
		}
		rows = slices.DeleteFunc(rows, func(r stats.Comparison) bool { return r.Metric != o.metric })
	}
	if o.json {
		err = view.JSON(a.stdout, map[string]any{"format": view.Format, "comparisons": present(rows)})
	} else {
		err = a.compareText(rows, one, other)
	}
	if err != nil {
		return err
	}
	return refusal(rows)
}

// compareBlock is the compare of that address; nil when none is named.
func (s *session) compareBlock(name string) (*hclspec.Compare, error) {
	if name == "" {
		return nil, nil
	}
	name = strings.TrimPrefix(name, "compare.")
	var known []string
	for i := range s.project.Spec.Compares {
		c := &s.project.Spec.Compares[i]
		if name == c.Address.Instance() {
			return c, nil
		}
		known = append(known, c.Address.Instance())
	}
	return nil, hint("The file has "+strings.Join(known, ", ")+".", "there is no compare %q%s", name, cli.Suggest(name, known))
}

func (a *app) compareText(rows []stats.Comparison, one, other string) error {
	fmt.Fprintf(a.stdout, "%s against %s\n", view.Clean(one), view.Clean(other))
	table := [][]string{{"benchmark", "metric", "A", "B", "effect", "blocks", "p", "outcome"}}
	for _, r := range rows {
		p, value, against := "-", "-", "-"
		if r.Blocks > 1 {
			p = fmt.Sprintf("%.3g", r.P)
		}
		if r.Blocks > 0 {
			value, against = fmt.Sprintf("%.5g %s", r.Value, view.Clean(r.Unit)), fmt.Sprintf("%.5g %s", r.AgainstValue, view.Clean(r.Unit))
		}
		table = append(table, []string{r.Benchmark, view.Clean(r.Metric), value, against, view.Effect(r), fmt.Sprint(r.Blocks), p, view.Outcome(r)})
	}
	view.Table(a.stdout, "  ", table)
	return nil
}
