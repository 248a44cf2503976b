package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/stats"
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
			"stay as they are; results are stored, so that the same try again measures nothing.\n\n" +
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
	} else if p, err := a.place(); err == nil && p.absent() && a.file == "" {
		return hint("Measure without a file, as in benchgraph try -bench 'go test -bench . -count 1', or say where "+
			"the file is with -chdir=DIR or -f FILE.", "there is no %s in %s", hclspec.RootFiles[0], p.dir)
	}
	aside := &remote.Aside{}
	o.measureAside(aside)
	o.try = func(ctx context.Context, s *session, spec *hclspec.Spec) (*hclspec.Try, error) {
		of, err := s.choose(ctx, o, spec)
		aside.Try, aside.Benchmark = &of.Try, of.benchmark
		return aside.Try, err
	}
	o.keepGoing = true
	if o.bench.Metric == undecided {
		if err := a.pilot(ctx, o); err != nil {
			return err
		}
	}
	o.Targets = cli.List{"compare." + hclspec.Tried}
	o.show = func(ctx context.Context, s *session, applied *campaign.Applied) error {
		return s.showTry(ctx, o, applied)
	}
	return a.applyLocked(ctx, &o.applyFlags, nil, nil)
}

// tryDoc is what a try found, as JSON.
type tryDoc struct {
	Format    string         `json:"format"`
	Benchmark string         `json:"benchmark"`
	Against   string         `json:"against"`
	Metric    string         `json:"metric"`
	Outcome   stats.Outcome  `json:"outcome"`
	Effect    *float64       `json:"effect"` // relative, positive is better; null: not known
	Low       *float64       `json:"low"`
	High      *float64       `json:"high"`
	Speedup   *float64       `json:"speedup"` // 1 + effect
	Value     *float64       `json:"value"`   // of the candidate, in unit
	Base      *float64       `json:"against_value"`
	Unit      string         `json:"unit"`
	Blocks    int            `json:"blocks"`
	Reason    string         `json:"reason"` // why there is no verdict
	Caveats   []stats.Caveat `json:"caveats"`
	Logs      []tryLog       `json:"logs"`
}

// tryLog is the complete output of the last attempt at a node of a try.
type tryLog struct {
	Address string `json:"address"`
	Log     string `json:"log"`
}

func (s *session) showTry(ctx context.Context, o *tryFlags, applied *campaign.Applied) error {
	rows, err := s.verdicts(ctx, applied.Plan)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(r stats.Comparison) bool { return r.Benchmark == "" || !r.Primary })
	if len(rows) != 1 {
		return fmt.Errorf("a try has one row, and here are %d", len(rows))
	}
	row := rows[0]
	row.Reason = strings.ReplaceAll(row.Reason, s.keptPatch(), o.given())
	_, blocked := s.waitingDeclared(applied.Plan)
	d := tryDoc{
		Format: view.Format, Benchmark: strings.TrimSuffix(row.Benchmark, " "+hclspec.Tried), Against: row.Against,
		Metric: row.Metric, Outcome: row.Outcome, Unit: row.Unit, Blocks: row.Blocks, Reason: row.Reason,
		Caveats: present(row.Caveats), Logs: s.logsOf(applied),
	}
	if row.Blocks > 0 {
		d.Value, d.Base = &row.Value, &row.AgainstValue
	}
	ratio := row.Ratio()
	d.Effect, d.Speedup, d.Low, d.High = ratio.Effect, ratio.Speedup, ratio.Low, ratio.High
	if o.json {
		err = view.JSON(s.stdout, d)
	} else {
		s.tryText(&d, &row, applied)
	}
	if err != nil {
		return err
	}
	return endOf(&o.failOn, rows, blocked, applied)
}

// tryText notes what is to be known beside the verdict, and writes the verdict as one line.
func (s *session) tryText(d *tryDoc, row *stats.Comparison, applied *campaign.Applied) {
	for _, f := range applied.Result.Failures[:min(len(applied.Result.Failures), 5)] {
		if i := slices.IndexFunc(d.Logs, func(l tryLog) bool { return l.Address == f.Address }); i >= 0 {
			s.note("%s: %s", f.Address, d.Logs[i].Log)
		}
	}
	for _, c := range d.Caveats {
		s.note("%s", c.Text)
	}
	line := s.style(s.stdout).Bold(string(d.Outcome))
	switch {
	case d.Effect == nil:
	case row.Better == stats.Lower:
		line += " " + row.EffectText()
		if interval := row.IntervalText(); interval != "" {
			line += fmt.Sprintf(", %g %% %s", 100*row.Confidence, interval)
		}
	default:
		line += fmt.Sprintf(" ×%.4g (%s", *d.Speedup, percentText(*d.Effect))
		if d.Low != nil {
			low := strings.TrimSuffix(percentText(*d.Low), " %")
			line += fmt.Sprintf(", %g %% %s to %s", 100*row.Confidence, low, percentText(*d.High))
		}
		line += ")"
	}
	if d.Blocks > 0 {
		line += fmt.Sprintf(", %s; %s %s → %s %s", view.Count(d.Blocks, "block"), view.Clean(d.Metric),
			view.Amount(*d.Base), view.Amount(*d.Value), view.Clean(d.Unit))
	}
	if d.Reason != "" && !d.Outcome.Judged() {
		line += ": " + view.Clean(d.Reason)
	}
	fmt.Fprintln(s.stdout, strings.TrimSpace(line))
}

// percentText is a relative difference for people, with its sign.
func percentText(x float64) string {
	if x > -0.1 && x < 0.1 {
		return fmt.Sprintf("%+.2f %%", 100*x)
	}
	return fmt.Sprintf("%+.1f %%", 100*x)
}

// logsOf are the logs that are on this machine of what a try ran, now or before.
func (s *session) logsOf(applied *campaign.Applied) []tryLog {
	logs, running := []tryLog{}, s.underWay().Running
	for i := range applied.Plan.Steps {
		step := &applied.Plan.Steps[i]
		switch step.Node.Kind {
		case "benchmark", "compare", "repo":
			continue
		}
		if all := s.attempts(step, running); len(all) > 0 && fileExists(all[len(all)-1].Log) {
			logs = append(logs, tryLog{step.Node.Address, all[len(all)-1].Log})
		}
	}
	return logs
}
