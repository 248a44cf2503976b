package main

import (
	"context"
	"flag"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/gate"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/noise"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/pick"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
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
			o.some(fs)
		},
		Run: func(ctx context.Context, args []string) error { return a.runNoise(ctx, o, args) },
	}
}

func (a *app) runNoise(ctx context.Context, o *noiseFlags, args []string) error {
	if err := o.applyFlags.check(); err != nil {
		return err
	}
	o.measureAside(&remote.Aside{Noise: args})
	o.keepGoing = true
	o.Targets = cli.List{"compare." + hclspec.Noise}
	o.show = func(ctx context.Context, s *session, applied *campaign.Applied, ended error) error {
		if ended != nil {
			return ended
		}
		return s.showNoise(ctx, o, applied)
	}
	return a.applyLocked(ctx, &o.applyFlags, nil, nil)
}

// measureAside makes the command measure candidates that the file does not declare.
func (o *access) measureAside(what *remote.Aside) {
	o.aside = what
	o.derive = func(spec *hclspec.Spec) (*hclspec.Spec, error) {
		if what.Try != nil {
			return spec.OnlyTry(what.Benchmark, what.Try.Commit)
		}
		return againstItself(spec, what.Noise)
	}
}

// againstItself returns the spec in which baselines are measured against themselves: that of the named benchmark, or of
// all.
func againstItself(spec *hclspec.Spec, args []string) (*hclspec.Spec, error) {
	var chosen func(hclspec.Address) bool
	if len(args) > 0 {
		pattern := pick.Quoted(args[0])
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
		derived, err := spec.AgainstItself(chosen)
		if err != nil {
			return nil,
				hint("Name a benchmark whose for_each goes over candidates, or the address of one of its baselines.",
					"%s: %w%s", args[0], err, cli.Suggest(args[0], names))
		}
		return derived, nil
	}
	derived, err := spec.AgainstItself(nil)
	if err != nil {
		return nil, hint("Let for_each of a benchmark go over candidates, of which one variant is the baseline.", "%w",
			err)
	}
	return derived, nil
}

func (s *session) showNoise(ctx context.Context, o *noiseFlags, applied *campaign.Applied) error {
	rows, _, err := s.verdicts(ctx, applied.Plan)
	if err != nil {
		return err
	}
	var docs []noise.Document
	for _, row := range rows {
		if row.Primary && row.Benchmark != "" { // other rows are of candidates that the compare is not about
			docs = append(docs, noise.Of(&row))
		}
	}
	if o.json {
		if err := view.JSON(s.stdout, map[string]any{"format": view.Format, "noise": document.Present(docs),
			"diagnostics": view.Diagnostics(s.warnings)}); err != nil {
			return err
		}
	} else {
		for _, d := range docs {
			d.Write(s.stdout, s.style(s.stdout))
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
	return gate.Refusal(slices.DeleteFunc(rows, func(r stats.Comparison) bool { return r.Benchmark == "" }))
}
