package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/draft"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/source/git/worktree"
)

// benchFlags say how a try without a file measures.
type benchFlags struct {
	command string
	base    string
	protect draft.Globs
	draft.Reading
	project draft.Project // the project of the try
}

func (o *benchFlags) flags(fs *flag.FlagSet) {
	fs.StringVar(&o.command, "bench", "",
		"without a file: measure with `COMMAND`, run by sh in the tree, in the directory where benchgraph was started")
	fs.StringVar(&o.base, "base", "HEAD", "with -bench: measure against the revision `REV`")
	o.Reading.Flags(fs, "with -bench: ")
	fs.Var(&o.protect, "protect", "with -bench: take files that match `GLOB` from the baseline; may be repeated")
}

// checkBench returns an error for flags that contradict each other.
func (o *tryFlags) checkBench(a *app) error {
	if o.bench.command == "" {
		if o.bench.base != "HEAD" || o.bench.Reading != (draft.Reading{}) || len(o.bench.protect) > 0 {
			return &cli.UsageError{Message: "-base, -metric, -match, -better and -protect go with -bench",
				Remedy: "a file says all that itself"}
		}
		return nil
	}
	if a.file != "" || o.benchmark != "" || o.commit != "" {
		return &cli.UsageError{
			Message: "-bench measures without a file, and -f, -benchmark and -commit are about one",
			Remedy:  "leave out either",
		}
	}
	return o.bench.Check()
}

// draftTry drafts the project of a try without a file, and makes it the project of this call.
func (a *app) draftTry(ctx context.Context, o *benchFlags) error {
	here, err := filepath.Abs(a.chdir)
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return err
	}
	host := executor.NewHost(executor.HostOptions{Owner: here})
	w, err := worktree.Open(ctx, host, here, a.gitEnviron())
	if errors.Is(err, worktree.ErrNone) {
		return hint("Start it there, or say where with -chdir=DIR.", "try -bench measures a repository: %w", err)
	}
	if err != nil {
		return err
	}
	base, err := w.Resolve(ctx, o.base)
	if err != nil {
		return hint("Write a commit, branch or tag of this repository.", "-base %s: %w", o.base, err)
	}
	below, err := filepath.Rel(w.Top, here)
	if err != nil {
		return err
	}
	bench := draft.Known(o.command)
	o.Reading.Apply(&bench)
	bench.Metric = cmp.Or(bench.Metric, sample.Undecided)
	if len(o.protect) > 0 {
		bench.Protect = o.protect
	}
	bench.Dir = strings.TrimPrefix(filepath.ToSlash(below), ".")
	o.project = draft.Project{
		Head: []string{"Written by benchgraph try -bench, anew each time."}, Repo: w.Top,
		Commits: []draft.Commit{{Name: base[:12], Rev: base}}, Bench: bench,
	}
	state, err := filepath.Abs(cmp.Or(a.env["BENCHGRAPH_STATE_DIR"], filepath.Join(w.Top, ".benchgraph")))
	if err != nil {
		return err
	}
	if err := (place{state: state}).prepare(); err != nil {
		return err
	}
	a.file = filepath.Join(state, "try", hclspec.RootFiles[0])
	return os.MkdirAll(filepath.Dir(a.file), 0o755)
}

// writeTry writes the file of a try without a file, beside the state. The caller holds the lock of the state, since
// other tries use the same file.
func (a *app) writeTry(ctx context.Context, p place, o *tryFlags) error {
	bench := &o.bench.project.Bench
	write := func() error { return fs.Replace(a.file, o.bench.project.HCL()) }
	named := o.bench.Reading.Metric != "" && bench.Better == ""
	if err := write(); err != nil || bench.Metric != sample.Undecided && !named {
		return err
	}
	metric, err := a.pilot(ctx, p, o)
	if err != nil || metric == bench.Metric {
		return err
	}
	bench.Metric = metric
	return write()
}

// pilot measures one block and picks the deciding metric from the output of its baseline. If there is no readable
// output, the try reports the reason.
func (a *app) pilot(ctx context.Context, p place, o *tryFlags) (metric string, err error) {
	first := *o
	first.Targets = cli.List{`{source,trial}.*["*{/before,#1}"]`} // both trees may be equal; then there is no block
	first.show = func(ctx context.Context, s *session, applied *campaign.Applied, err error) error {
		if err == nil {
			metric, err = s.metricOf(ctx, applied, o.bench.project.Bench.Metric)
		}
		return err
	}
	err = a.applyHeld(ctx, p, &first.applyFlags, nil, nil)
	o.run = first.run // both are one apply: nobody has looked in between
	return metric, err
}

// metricOf returns the deciding metric by the output of the first block's baseline: named, unless that is undecided.
func (s *session) metricOf(ctx context.Context, applied *campaign.Applied, named string) (string, error) {
	for i := range applied.Plan.Steps {
		step := &applied.Plan.Steps[i]
		if step.Node.Kind != "trial" {
			continue
		}
		end, err := applied.Plan.End(ctx, s.store, step)
		if err != nil || end.Entry.Dir == "" {
			return named, err
		}
		rec, err := sample.ReadRecord(end.Entry)
		if err != nil {
			return "", err
		}
		for name, m := range rec.Members {
			c := slices.IndexFunc(s.project.Spec.Candidates, func(c hclspec.Candidate) bool {
				return c.Key == m.Candidate
			})
			failed := m.Failure != nil && !sample.ByReading(m.Failure.Rule)
			if c < 0 || !s.project.Spec.Candidates[c].Baseline || failed || m.Skipped != "" {
				continue
			}
			read, err := sample.Read(hclspec.Metrics{Format: "auto"}, hclspec.Command{},
				filepath.Join(end.Entry.Dir, name))
			if err != nil || read.Failure != nil {
				return named, err
			}
			if named != sample.Undecided {
				return named, draft.Directed(named, read.Samples)
			}
			return draft.Deciding(read.Samples)
		}
	}
	return named, nil
}
