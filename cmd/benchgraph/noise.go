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
	"github.com/benchgraph/benchgraph/tasks"
)

type noiseFlags struct {
	applyFlags
	json bool
}

func (a *app) noise() cli.Command {
	o := &noiseFlags{}
	return cli.Command{
		Name: "noise", Args: "[BENCHMARK]", Max: 1,
		Summary: "measure a baseline against itself: the smallest difference that this machine can see",
		Long: "BENCHMARK is a benchmark's name, or the address of one of its baselines; without it, all benchmarks " +
			"are measured, each with the first\n" +
			"baseline of the file. The baseline is measured as the file says, once more under another name in the " +
			"same blocks; results are stored, so\n" +
			"that a second call measures nothing. A difference that is found is a fault of the machine or of the " +
			"benchmark.",
		Flags: func(fs *flag.FlagSet) {
			a.jsonFlag(fs, &o.json)
			fs.BoolVar(&o.locked, "locked", false, "refuse to change benchgraph.lock.hcl")
			fs.BoolVar(&o.offline, "offline", false, "reach no network")
			fs.StringVar(&o.devices, "devices", "",
				"use only these GPUs: a `LIST` of indices or UUIDs, separated by commas")
			fs.BoolVar(&o.RetryFailed, "retry-failed", false, "run nodes again that failed before")
			o.sandboxFlag(fs)
			o.limits(fs)
		},
		Run: func(ctx context.Context, args []string) error { return a.runNoise(ctx, o, args) },
	}
}

func (a *app) runNoise(ctx context.Context, o *noiseFlags, args []string) error {
	if err := o.applyFlags.check(); err != nil {
		return err
	}
	o.derive = func(spec *hclspec.Spec) (*hclspec.Spec, error) { return againstItself(spec, args) }
	o.keepGoing = true
	o.Targets = cli.List{"compare." + hclspec.Noise}
	o.show = func(ctx context.Context, s *session, applied *tasks.Applied) error {
		return s.showNoise(ctx, o, applied)
	}
	return a.applyLocked(ctx, &o.applyFlags, nil, nil)
}

// againstItself is the spec in which the baseline of the named benchmark, or that of each, is measured against itself.
func againstItself(spec *hclspec.Spec, args []string) (*hclspec.Spec, error) {
	var chosen func(hclspec.Address) bool
	if len(args) > 0 {
		pattern := address(args[0])
		if !strings.HasPrefix(pattern, "benchmark.") {
			pattern = "benchmark." + pattern
		}
		if _, err := hclspec.MatchAddress(pattern, "kind.name"); err != nil {
			return nil, &cli.UsageError{Message: err.Error(),
				Remedy: `name a benchmark, or an address like benchmark.NAME["COMMIT/BASELINE"]`}
		}
		var names []string
		chosen = func(a hclspec.Address) bool {
			names = append(names, a.Name)
			ok, _ := hclspec.MatchAddress(pattern, a.String())
			return ok
		}
		own, err := spec.AgainstItself(chosen)
		if err != nil {
			return nil,
				hint("Name a benchmark whose for_each goes over candidates, or the address of one of its baselines.",
					"%s: %w%s", args[0], err, cli.Suggest(args[0], names))
		}
		return own, nil
	}
	own, err := spec.AgainstItself(nil)
	if err != nil {
		return nil, hint("Let for_each of a benchmark go over candidates, of which one variant is the baseline.", "%w",
			err)
	}
	return own, nil
}

// noiseDoc is what a baseline against itself says of one metric, as JSON.
type noiseDoc struct {
	Benchmark string          `json:"benchmark"`
	Candidate string          `json:"candidate"` // the baseline
	Metric    string          `json:"metric"`
	Blocks    int             `json:"blocks"`
	Effect    *float64        `json:"effect"` // of the baseline against itself, relative; null: not known
	Low       *float64        `json:"low"`
	High      *float64        `json:"high"`
	P         *float64        `json:"p"`
	Deviation *float64        `json:"deviation"` // between blocks, relative
	Margin    float64         `json:"margin"`    // below which no verdict calls a difference one
	Sees      *float64        `json:"sees"`      // smallest effect that so many blocks show
	Table     []noiseRow      `json:"table"`
	Reason    string          `json:"reason,omitempty"` // why nothing is known
	Caveats   []stats.Caveat  `json:"caveats"`
	Outcome   stats.Outcome   `json:"outcome"`
	Attempts  *stats.Attempts `json:"attempts"`
}

// noiseRow is how small an effect a number of blocks shows.
type noiseRow struct {
	Blocks int     `json:"blocks"`
	Sees   float64 `json:"sees"`
}

func (s *session) showNoise(ctx context.Context, o *noiseFlags, applied *tasks.Applied) error {
	rows, err := s.verdicts(ctx, applied.Plan)
	if err != nil {
		return err
	}
	var docs []noiseDoc
	for _, row := range rows {
		if row.Primary && row.Benchmark != "" { // candidates that it is not about have no benchmark here
			docs = append(docs, noiseOf(&row))
		}
	}
	if o.json {
		if err := view.JSON(s.stdout, map[string]any{"format": view.Format, "noise": present(docs)}); err != nil {
			return err
		}
	} else {
		for _, d := range docs {
			s.noiseText(d)
		}
	}
	if n := applied.Result.Failed; n > 0 {
		for _, f := range applied.Result.Failures[:min(len(applied.Result.Failures), 20)] {
			s.note("%s: %s", f.Address, f.Failure.Message)
		}
		return &failedError{n}
	}
	if _, blocked := s.waitingDeclared(applied.Plan); len(blocked) > 0 {
		for _, step := range blocked {
			s.note("blocked: %s: %s", step.Node.Address, step.Reason)
		}
		return hindrance(blocked)
	}
	return refusal(slices.DeleteFunc(rows, func(r stats.Comparison) bool { return r.Benchmark == "" }))
}

// noiseOf is what a row of a baseline against itself says.
func noiseOf(row *stats.Comparison) noiseDoc {
	d := noiseDoc{Benchmark: strings.TrimSuffix(row.Benchmark, " "+hclspec.Noise), Candidate: row.Against,
		Metric: row.Metric, Blocks: row.Blocks, Margin: row.Tie,
		Table: []noiseRow{}, Caveats: []stats.Caveat{}, Outcome: row.Outcome, Attempts: row.Attempts}
	for _, c := range row.Caveats {
		if c.Kind != stats.CaveatIdentical { // that is what was asked for
			d.Caveats = append(d.Caveats, c)
		}
	}
	deviation := row.Deviation()
	if row.Blocks < 2 || row.NoRatio {
		d.Reason = row.Reason
		return d
	}
	d.Effect, d.Low, d.High, d.P = &row.Effect, &row.Low, &row.High, &row.P
	if deviation == 0 {
		d.Reason = "both sides have the same number in every block: a number that never changes is no measurement"
		return d
	}
	sees := stats.Sees(deviation, row.Blocks, row.Confidence)
	d.Deviation, d.Sees = &deviation, &sees
	blocks := []int{4, 6, 7, 9, 11, 12, 15, 20, 30, row.Blocks}
	slices.Sort(blocks)
	for _, n := range slices.Compact(blocks) {
		d.Table = append(d.Table, noiseRow{n, stats.Sees(deviation, n, row.Confidence)})
	}
	return d
}

func (s *session) noiseText(d noiseDoc) {
	style := s.style(s.stdout)
	fmt.Fprintf(s.stdout, "%s: %s against itself, %s, %s\n", style.Bold("benchmark."+view.Clean(d.Benchmark)),
		view.Clean(d.Candidate), view.Clean(d.Metric), view.Count(d.Blocks, "block"))
	if d.Effect != nil {
		fmt.Fprintf(s.stdout, "  difference %+.2f %% [%+.2f %%, %+.2f %%], p = %.3g\n", 100**d.Effect, 100**d.Low,
			100**d.High, *d.P)
		if *d.Low > 0 || *d.High < 0 {
			fmt.Fprintln(s.stdout,
				"  One in twenty intervals leaves out 0 by chance. If the next one does, too, the machine or the "+
					"benchmark favours a place or a name.")
		}
	}
	for _, c := range d.Caveats {
		fmt.Fprintf(s.stdout, "  %s\n", view.Clean(c.Text))
	}
	if d.Sees == nil {
		fmt.Fprintf(s.stdout, "  nothing is known: %s\n", view.Clean(d.Reason))
		return
	}
	table := [][]string{{"blocks", "sees"}}
	for _, row := range d.Table {
		table = append(table, []string{view.Number(row.Blocks), "≥ " + percentOf(row.Sees)})
	}
	view.Table(s.stdout, "  ", table)
	fmt.Fprintf(s.stdout,
		"  In four of five cases, judged once at 95 %% confidence, by the noise of these blocks (%s from block to "+
			"block).\n", percentOf(*d.Deviation))
	if *d.Sees < d.Margin {
		fmt.Fprintf(s.stdout, "  A verdict wants at least the margin, %s.\n", percentOf(d.Margin))
	}
	fmt.Fprintf(s.stdout, "%s\n", style.Bold(fmt.Sprintf("benchmark.%s: this machine sees ≥ %s with %s",
		view.Clean(d.Benchmark), percentOf(*d.Sees), view.Count(d.Blocks, "block"))))
}

// percentOf is a share for people, with two digits that count.
func percentOf(share float64) string {
	percent := 100 * share
	switch {
	case percent >= 10:
		return fmt.Sprintf("%.0f %%", percent)
	case percent >= 1:
		return fmt.Sprintf("%.1f %%", percent)
	}
	return fmt.Sprintf("%.2g %%", percent)
}
