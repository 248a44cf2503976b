package main

import (
	"cmp"
	"context"
	"flag"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/tried"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/report/document"
)

type tryFlags struct {
	applyFlags
	json      bool
	patch     string // path, or - for standard input; empty: none
	rev       string
	benchmark string
	commit    string
	bench     benchFlags
}

func (a *app) try() cli.Command {
	o := &tryFlags{}
	return cli.Command{
		Name: "try", Args: "[PATCH]", Max: 1,
		Summary: "measure a patch, a revision or the uncommitted changes against a baseline",
		Long: "PATCH is a file, or - for standard input, and is applied to the baseline's revision. -rev takes a\n" +
			"revision as it is. Without either, the work tree is measured as it stands. The candidate has the\n" +
			"settings of the baseline and obeys all protect lists of the file. The file, its lock and its reports\n" +
			"stay as they are; results are stored, so that the same try again measures nothing. While another try\n" +
			"of the project runs, this one waits.\n\n" +
			"With -bench COMMAND no file is needed: the command is run in the tree of the repository's last\n" +
			"commit, or of -base REV, and in that of the candidate. The format of its output is detected as parse\n" +
			"does. Such a command runs without a sandbox, since toolchains keep their caches in your home;\n" +
			"-sandbox=required gives it one.",
		Flags: func(fs *flag.FlagSet) {
			a.jsonFlag(fs, &o.json)
			fs.StringVar(&o.rev, "rev", "", "measure the revision `REV` of the commit's repo")
			fs.StringVar(&o.benchmark, "benchmark", "", "measure with `BENCHMARK` of the file")
			fs.StringVar(&o.commit, "commit", "", "measure against the baseline of `COMMIT`")
			o.bench.flags(fs)
			o.some(fs)
			o.failOn.Flag(fs)
		},
		Run: func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				o.patch = args[0]
			}
			return a.runTry(ctx, o)
		},
	}
}

func (a *app) runTry(ctx context.Context, o *tryFlags) error {
	if err := o.applyFlags.check(); err != nil {
		return err
	}
	if o.patch != "" && o.rev != "" {
		return &cli.UsageError{Message: "a patch and -rev are two candidates", Remedy: "try one of them"}
	}
	if err := o.checkBench(a); err != nil {
		return err
	}
	if o.bench.command != "" {
		if err := a.draftTry(ctx, &o.bench); err != nil {
			return err
		}
	}
	p, err := a.place()
	switch {
	case err != nil:
		return err
	case o.bench.command == "" && p.absent() && a.file == "":
		return hint("Measure without a file, as in benchgraph try -bench 'go test -bench . -count 1', or say where "+
			"the file is with -chdir=DIR or -f FILE."+p.above(), "there is no %s in %s", hclspec.RootFiles[0], p.dir)
	case o.bench.command == "" && p.absent():
		return a.applyLocked(ctx, &o.applyFlags, nil, nil) // reports the missing file
	}
	unlock, err := a.lockState(ctx, p, o)
	if err != nil {
		return err
	}
	defer unlock()
	aside := &remote.Aside{}
	o.measureAside(aside)
	o.try = func(ctx context.Context, s *session, spec *hclspec.Spec) (*hclspec.Try, error) {
		chosen, err := s.choose(ctx, o, spec)
		aside.Try, aside.Benchmark = &chosen.Try, chosen.benchmark
		return aside.Try, err
	}
	o.keepGoing = true
	if o.bench.command != "" {
		if err := a.writeTry(ctx, p, o); err != nil {
			return err
		}
	}
	o.Targets = cli.List{"compare." + hclspec.Tried}
	o.show = func(ctx context.Context, s *session, applied *campaign.Applied, ended error) error {
		return s.showTry(ctx, o, applied, ended)
	}
	return a.applyHeld(ctx, p, &o.applyFlags, nil, nil)
}

// showTry shows the verdict. For a try that ended before its time, it shows how things stand then.
func (s *session) showTry(ctx context.Context, o *tryFlags, applied *campaign.Applied, ended error) (err error) {
	if ended != nil {
		if applied.Plan, err = s.project.Judged(ctx); err != nil {
			return ended
		}
	}
	rows, found, err := s.verdicts(ctx, applied.Plan)
	if err != nil {
		return err
	}
	d := tried.Document{Preflight: s.project.Preflight(), Logs: s.logsOf(applied),
		Diagnostics: append(view.Diagnostics(s.warnings), viewError(ended)...)}
	for _, r := range rows {
		if r.Benchmark != "" { // other rows are of candidates that the compare is not about
			d.Comparisons = append(d.Comparisons, r)
		}
	}
	var accounted document.Document
	s.account(&accounted, found, s.project.Spec)
	d.Failures = accounted.Failures
	given := func(text string) string { return strings.ReplaceAll(text, s.keptPatch(), o.given()) }
	if err := d.Fill(given); err != nil {
		return err
	}
	if o.json {
		err = view.JSON(s.stdout, d)
	} else {
		s.noteTried(&d, applied)
		d.Write(s.stdout, s.style(s.stdout))
	}
	if err != nil {
		return err
	}
	if ended != nil {
		return cmp.Or(o.failOn.Check(d.Comparisons, nil), ended)
	}
	_, blocked := s.waitingDeclared(applied.Plan)
	return endOf(&o.failOn, d.Comparisons, blocked, applied)
}

// noteTried prints logs of failures, and caveats, beside the verdict.
func (s *session) noteTried(d *tried.Document, applied *campaign.Applied) {
	for _, f := range applied.Result.Failures[:min(len(applied.Result.Failures), 5)] {
		if i := slices.IndexFunc(d.Logs, func(l tried.Log) bool { return l.Address == f.Address }); i >= 0 {
			s.note("%s: %s", f.Address, d.Logs[i].Log)
		}
	}
	for _, text := range d.Notes() {
		s.note("%s", text)
	}
}

// logsOf returns the logs on this machine of the nodes that a try ran, now or before.
func (s *session) logsOf(applied *campaign.Applied) []tried.Log {
	logs, running := []tried.Log{}, s.underWay().Running
	for i := range applied.Plan.Steps {
		step := &applied.Plan.Steps[i]
		switch step.Node.Kind {
		case "benchmark", "compare", "repo":
			continue
		}
		t, ok := runlog.Standing(runlog.OfStep(s.journal, step, running, s.logOf), step, s.logOf)
		if ok && fileExists(t.Log) {
			logs = append(logs, tried.Log{Address: step.Node.Address, Log: t.Log})
		}
	}
	return logs
}
