package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache/shared"
	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/gate"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/pick"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/findings"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
)

type compareFlags struct {
	json    bool
	metric  string
	compare string
	allow   cli.List
	failOn  gate.Gate
}

func (a *app) compare() cli.Command {
	o := &compareFlags{}
	return cli.Command{
		Name: "compare", Args: "CANDIDATE-A CANDIDATE-B", Min: 2, Max: 2,
		Summary: "compare two candidates, or two runs of one, from stored results",
		Long: "A and B are candidates of one commit: 22d33bac/human 22d33bac/baseline. Positive effects mean that A " +
			"is better.\n" +
			"Or they are what two runs measured of one candidate: 22d33bac/human@2 22d33bac/human@1. A run is a " +
			"number, or the\n" +
			"beginning of a name, as benchgraph show benchmark.NAME[\"22d33bac/human\"] lists them. Two runs share " +
			"no blocks, so that there\n" +
			"are numbers and no verdict; -allow-mismatch accepts and labels an intended difference, such as " +
			"that of hardware.",
		Flags: func(fs *flag.FlagSet) {
			a.jsonFlag(fs, &o.json)
			fs.StringVar(&o.metric, "metric", "", "compare only `METRIC`")
			fs.StringVar(&o.compare, "compare", "",
				"judge by the rules of `COMPARE`, where several compares have the candidates")
			allowFlag(fs, &o.allow)
			o.failOn.Flag(fs)
		},
		Run: func(ctx context.Context, args []string) error { return a.runCompare(ctx, o, args[0], args[1]) },
	}
}

func (a *app) runCompare(ctx context.Context, o *compareFlags, one, other string) error {
	look := &shared.Look{}
	s, err := a.open(ctx, access{offline: true, look: look, allow: o.allow})
	if err != nil {
		return err
	}
	defer s.close()
	by, err := s.compareBlock(o.compare)
	if err != nil {
		return err
	}
	one, benchmark := pick.Candidate(one)
	other, otherBenchmark := pick.Candidate(other)
	found, stored, err := s.pair(ctx, one, other, by)
	for _, note := range found.Notes {
		s.note("%s", note)
	}
	if err != nil {
		return err
	}
	rows := slices.DeleteFunc(found.Rows, func(r stats.Comparison) bool {
		return benchmark != "" && r.Benchmark != benchmark || otherBenchmark != "" && r.Benchmark != otherBenchmark
	})
	if o.metric != "" {
		var metrics []string
		for _, row := range rows {
			metrics = append(metrics, row.Metric)
		}
		if !slices.Contains(metrics, o.metric) {
			return hint("Without -metric, all are shown.", "no metric %q was measured for both%s", o.metric,
				cli.Suggest(o.metric, metrics))
		}
		rows = slices.DeleteFunc(rows, func(r stats.Comparison) bool { return r.Metric != o.metric })
	}
	if stored != nil {
		if rows, err = s.settled(ctx, stored, rows); err != nil {
			return err
		}
	}
	if o.json {
		err = view.JSON(a.stdout, map[string]any{"format": view.Format, "comparisons": document.Present(rows),
			"diagnostics": view.Diagnostics(s.warnings)})
	} else {
		err = a.compareText(rows, one, other)
	}
	if err != nil {
		return err
	}
	return o.failOn.Check(rows, s.lacking(look, false))
}

// settled adds to open rows the number of blocks that would settle them, each as long as the measured blocks.
func (s *session) settled(ctx context.Context, stored *results.Stored, rows []stats.Comparison) ([]stats.Comparison,
	error) {
	if !slices.ContainsFunc(rows, func(r stats.Comparison) bool { return r.Needed > r.Blocks }) {
		return rows, nil
	}
	found, err := stored.Findings(ctx)
	all := findings.Findings{Comparisons: rows}
	for _, f := range found {
		all.Spent, all.Measurements = append(all.Spent, f.Spent...), append(all.Measurements, f.Measurements...)
	}
	rows, _ = all.Settled(pricesOf(s.project.Spec))
	return rows, err
}

// pair compares two candidates, or two runs of one candidate. It also returns the stored results of the candidates; nil
// for two runs, whose rows have no verdict.
func (s *session) pair(ctx context.Context, one, other string, by *hclspec.Compare) (found results.Paired,
	stored *results.Stored, err error) {
	known := pick.Words(s.project.Spec, "CANDIDATE")
	if slices.Contains(known, one) && slices.Contains(known, other) {
		p, err := s.measured(ctx)
		if err != nil {
			return found, nil, err
		}
		stored = s.project.Stored(p)
		found, err = stored.Pair(ctx, one, other, by)
		return found, stored, err
	}
	if _, err := s.standing(ctx); err != nil { // it draws the groups, which tell which runs there may be
		return found, nil, err
	}
	a, err := s.side(ctx, one)
	if err != nil {
		return found, nil, err
	}
	b, err := s.side(ctx, other)
	switch {
	case err != nil:
		return found, nil, err
	case a.run == "" || b.run == "" || a.candidate != b.candidate:
		return found, nil,
			&cli.UsageError{Message: fmt.Sprintf("%s and %s are neither two candidates nor two runs of one", one,
				other),
				Remedy: fmt.Sprintf("compare %[1]s@2 %[1]s@1 holds the second run that measured it against the "+
					"first one",
					a.candidate)}
	case a.run == b.run:
		return found, nil, &cli.UsageError{Message: one + " and " + other + " are one run", Remedy: "name two"}
	}
	found, err = results.PairRuns(ctx, s.project.Drawing, a.candidate, a.run, b.run, by)
	return found, nil, err
}

// side is one side of a comparison: a candidate as it stands, or as one run measured it.
type side struct{ candidate, run string }

func (s *session) side(ctx context.Context, text string) (side, error) {
	known := pick.Words(s.project.Spec, "CANDIDATE")
	if slices.Contains(known, text) {
		return side{candidate: text}, nil
	}
	name, run := text, ""
	at := strings.LastIndex(text, "@")
	if at >= 0 {
		name, run = text[:at], text[at+1:]
	}
	if !slices.Contains(known, name) {
		return side{}, hint("A candidate is COMMIT/VARIANT.", "there is no candidate %q%s", name,
			cli.Suggest(name, known))
	}
	var fit, all []string
	for _, r := range results.Runs(ctx, s.project.Drawing, name) {
		all = append(all, fmt.Sprintf("@%d is %s", r.Number, r.Name))
		if fmt.Sprint(r.Number) == run || len(run) >= len("20060102") && strings.HasPrefix(r.Name, run) {
			fit = append(fit, r.Name)
		}
	}
	if len(fit) == 1 {
		return side{name, fit[0]}, nil
	}
	what := "no run"
	if len(fit) > 1 {
		what = "more than one run"
	}
	remedy := "No run that is remembered has measured it."
	if len(all) > 0 {
		remedy = "Of those that measured it, " + strings.Join(all, ", ") + "."
	}
	return side{}, hint(remedy, "%s of %s is %q", what, name, run)
}

// compareBlock returns the compare with that address; nil for an empty name.
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
	return nil, hint("The file has "+strings.Join(known, ", ")+".", "there is no compare %q%s", name,
		cli.Suggest(name, known))
}

func (a *app) compareText(rows []stats.Comparison, one, other string) error {
	fmt.Fprintf(a.stdout, "%s against %s\n", view.Clean(one), view.Clean(other))
	table := [][]string{{"benchmark", "metric", "better", "A", "B", "effect", "blocks", "p_t", "outcome"}}
	for _, r := range rows {
		p, value, against := "-", "-", "-"
		if r.Blocks > 1 {
			p = view.TestP(r)
		}
		if r.Blocks > 0 {
			value, against = view.Amount(r.Value)+" "+view.Clean(r.Unit),
				view.Amount(r.AgainstValue)+" "+view.Clean(r.Unit)
		}
		table = append(table, []string{r.Benchmark, view.Clean(r.Metric), view.Direction(r), value, against,
			view.Effect(r), fmt.Sprint(r.Blocks), p, view.Outcome(r)})
	}
	view.Table(a.stdout, "  ", table)
	return nil
}
