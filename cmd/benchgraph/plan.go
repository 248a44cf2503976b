package main

import (
	"context"
	"flag"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
)

type planFlags struct {
	selection
	access
	out      string
	json     bool
	detailed bool
	verbose  bool
	allow    cli.List
}

func (o *planFlags) flags(fs *flag.FlagSet) {
	o.selection.flags(fs)
	fs.BoolVar(&o.json, "json", false, "write JSON to stdout")
	fs.BoolVar(&o.verbose, "verbose", false, "show every node")
	fs.BoolVar(&o.locked, "locked", false, "refuse to change benchgraph.lock.hcl")
	fs.BoolVar(&o.offline, "offline", false, "reach no network")
	fs.StringVar(&o.devices, "devices", "", "use only these GPUs: a `LIST` of indices or UUIDs, separated by commas")
	allowFlag(fs, &o.allow)
}

func allowFlag(fs *flag.FlagSet, allow *cli.List) {
	fs.Var(allow, "allow-mismatch", "let this `FIELD` of the methodology differ, and label every figure that it lets through")
}

func (a *app) plan() cli.Command {
	o := &planFlags{}
	return cli.Command{
		Name: "plan", Summary: "shows what apply would do, and why, without doing it",
		Flags: func(fs *flag.FlagSet) {
			o.flags(fs)
			fs.StringVar(&o.out, "out", "", "write the plan to `FILE`, for apply")
			fs.BoolVar(&o.detailed, "detailed-exitcode", false, "exit with 2 when there is something to do")
		},
		Run: func(ctx context.Context, _ []string) error { return a.runPlan(ctx, o) },
	}
}

func (a *app) runPlan(ctx context.Context, o *planFlags) error {
	o.access.allow = o.allow
	if o.everything() {
		o.access.recall = recallAll
	}
	s, err := a.open(ctx, o.access)
	if err != nil {
		return err
	}
	defer s.close()
	p, _, err := s.plan(ctx, &o.selection)
	if err != nil {
		return err
	}
	s.memorize(ctx, p, &o.selection)
	f := s.forecast(p)
	if o.json {
		err = view.PlanJSON(a.stdout, p, f)
	} else {
		err = view.Plan(a.stdout, a.style(a.stdout), p, f, o.verbose)
	}
	if err != nil {
		return err
	}
	if o.out != "" {
		if err := writePlanFile(o.out, s, &o.selection, o.allow, p); err != nil {
			return err
		}
		a.note("The plan is in %s: benchgraph apply %s does exactly that.", o.out, o.out)
	}
	if err := o.selection.infeasible(p); err != nil {
		return err
	}
	if o.detailed && p.Counts()[engine.Run] > 0 {
		return pendingError{}
	}
	return nil
}

func (s *session) forecast(p *engine.Plan) view.Forecast {
	return view.Predict(p, s.cpus, s.gpus.Devices, s.project.Spec.GPUHour)
}
