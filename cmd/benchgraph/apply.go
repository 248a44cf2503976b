package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/applylock"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/gate"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/gpuhours"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/watch"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor/family"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/remote/detach"
)

type applyFlags struct {
	planFlags
	keepGoing   bool
	failFast    bool
	parallelism int
	maxGPUHours float64
	detach      bool
	deadline    cli.Deadline
	deviceWait  time.Duration
	approve     bool
	failOn      gate.Gate
	agent       bool
	run         string // name of this apply; empty: it gets a new one
	// replaces the usual summary at the end, and returns the error of the command; nil: the usual summary. ended is the
	// limit or interrupt that ended the apply before its time; nil: there was none
	show func(ctx context.Context, s *session, applied *campaign.Applied, ended error) error
}

func (a *app) apply() cli.Command {
	o := &applyFlags{}
	return cli.Command{
		Name: "apply", Args: "[PLANFILE]", Max: 1,
		Summary: "carry out the plan; with PLANFILE, exactly that plan or nothing",
		Long: "When a node fails, everything that does not need it goes on. After an interruption, apply goes on " +
			"where it stopped.",
		Flags: func(fs *flag.FlagSet) {
			a.events = true
			a.planFlags(fs, &o.planFlags)
			fs.BoolVar(&o.keepGoing, "keep-going", true,
				"after a failure, go on with the nodes that do not need the failed one")
			fs.BoolVar(&o.failFast, "fail-fast", false, "after a failure, start no further node")
			o.limits(fs)
			fs.BoolVar(&o.detach, "detach", false,
				"return when nothing runs but jobs of a cluster, which go on; the next apply follows them")
			o.failOn.Flag(fs)
			fs.BoolVar(&o.agent, "agent", false,
				"write only failures and verdicts, a line each, for a program that reads text")
			fs.BoolVar(&o.approve, "auto-approve", false, "accepted for scripts; nothing is ever asked")
		},
		Run: func(ctx context.Context, args []string) error { return a.runApply(ctx, o, args) },
	}
}

func (o *applyFlags) check() error {
	if err := o.access.check(); err != nil {
		return err
	}
	for i, value := range []float64{float64(o.parallelism), o.maxGPUHours, float64(o.deviceWait)} {
		if value < 0 {
			name := []string{"-parallelism", "-max-gpu-hours", "-device-wait"}[i]
			return &cli.UsageError{Message: name + " is negative", Remedy: "0 means: no limit"}
		}
	}
	return nil
}

// some defines the apply flags of a command that chooses the nodes itself.
func (o *applyFlags) some(fs *flag.FlagSet) {
	o.here(fs)
	o.retryFlag(fs)
	o.sandboxFlag(fs)
	o.limits(fs)
}

// limits defines the flags that bound how much runs at once, and for how long.
func (o *applyFlags) limits(fs *flag.FlagSet) {
	fs.IntVar(&o.parallelism, "parallelism", 0, "run at most `N` nodes at once; 0: as many as the machine grants")
	fs.Float64Var(&o.maxGPUHours, "max-gpu-hours", 0, "stop when `N` GPU hours are used up; 0: no limit")
	fs.Var(&o.deadline, "deadline",
		"stop at `TIME`, such as 18:30 or 2026-01-02T18:30:00Z, or after a duration such as 2h30m; results are kept")
	fs.DurationVar(&o.deviceWait, "device-wait", 15*time.Minute,
		"fail a node that waits `DURATION` for GPUs or disk space in use by others; 0: wait for ever")
}

func (a *app) runApply(ctx context.Context, o *applyFlags, args []string) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	// A reader of the output may go away. The running work is worth more than its output; the error of the lost output
	// is reported at the end.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	var file *planFile
	if len(args) == 1 {
		if file, err = a.adopt(o, args[0]); err != nil {
			return err
		}
	}
	var stream *watch.Stream
	if o.json {
		stream = watch.NewStream(a.stdout, version)
		defer func() {
			if err != nil && !a.summed {
				// the command ended before anything was applied
				a.sumJSON(ctx, &campaign.Applied{}, nil, conclusion{stream: stream}, err)
			}
			err = errors.Join(err, stream.Err())
		}()
	}
	if o.about, err = o.typed(); err != nil {
		return err
	}
	return a.applyLocked(ctx, o, file, stream)
}

// applyLocked applies under the lock of the state.
func (a *app) applyLocked(ctx context.Context, o *applyFlags, file *planFile, stream *watch.Stream) error {
	p, err := a.place()
	if err != nil {
		return err
	}
	if p.absent() {
		s, err := a.open(ctx, o.access) // reports the missing file
		if err == nil {
			s.close()
		}
		return err
	}
	unlock, err := a.lockState(ctx, p, nil)
	if err != nil {
		return err
	}
	defer unlock()
	return a.applyHeld(ctx, p, o, file, stream)
}

// applyHeld applies. The caller holds the lock of the state.
func (a *app) applyHeld(ctx context.Context, p place, o *applyFlags, file *planFile, stream *watch.Stream) error {
	if n, err := family.Reap(ctx, p.hostOptions().Owner); err != nil {
		a.note("Warning: %v", err)
	} else if n > 0 {
		a.note("Ended %d processes that an earlier, killed apply had left behind.", n)
	}
	if fileExists(p.containerMark()) {
		a.reapContainers(ctx, p)
	}
	o.access.allow = o.allow
	if o.everything() {
		o.access.recall = recallNodes
	}
	s, err := a.open(ctx, o.access)
	if err != nil {
		return err
	}
	defer s.close()
	if stream != nil {
		writeDiagnostics(stream, view.Diagnostics(s.warnings))
	}
	s.resetClocks()
	return s.apply(ctx, o, file, stream)
}

// adopt reads a plan file and takes over its flags and project.
func (a *app) adopt(o *applyFlags, path string) (*planFile, error) {
	f, err := readPlanFile(path)
	if err != nil {
		return nil, err
	}
	if len(o.Targets)+len(o.Excludes)+len(o.Replaces)+len(a.vars)+len(a.varFiles)+len(o.machine)+len(o.sandbox) > 0 ||
		o.RetryFailed || o.upgrade {
		return nil, &cli.UsageError{Message: "a plan file says itself what is selected, and with which variables",
			Remedy: "give these flags to plan -out"}
	}
	if a.file == "" && a.chdir == "" {
		a.file = f.Project
	}
	o.selection, o.allow, o.machine, o.upgrade, o.sandbox = f.Select, f.Allow, f.Machine, f.Upgrade, f.Sandbox
	a.vars, a.varFiles = f.Vars, f.VarFiles
	return f, nil
}

// lockState takes the lock that lets one apply at a time change the state. A try waits for other tries.
func (a *app) lockState(ctx context.Context, p place, try *tryFlags) (release func(), err error) {
	if err := p.prepare(); err != nil {
		return nil, err
	}
	if try != nil && !try.deadline.Time.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, try.deadline.Time,
			reached(try.deadline, "another try of the project still ran, and nothing was begun"))
		defer cancel()
	}
	owner := applylock.Owner{Command: "benchgraph " + strings.Join(a.args, " "), Try: try != nil}
	lock, err := applylock.Await(ctx, p.applyLock(), owner, func(held *applylock.HeldError) {
		a.note("Waiting for another try to end: %v", held)
	})
	if err != nil {
		return nil, err
	}
	return func() {
		if err := lock.Release(); err != nil {
			a.note("Warning: %v", err)
		}
	}, nil
}

// apply plans, shows the plan, applies it, and shows the outcome.
func (s *session) apply(ctx context.Context, o *applyFlags, file *planFile, stream *watch.Stream) error {
	p, options, err := s.plan(ctx, &o.selection)
	if err != nil {
		return err
	}
	if err := s.project.Unlike(options); err != nil {
		return err
	}
	if err := o.selection.infeasible(p); err != nil {
		return err
	}
	if o.try == nil { // a try gets its compare only when its metric is known
		if err := o.failOn.NeedsCompare(p); err != nil {
			return err
		}
	}
	if file != nil {
		if err := file.check(p, s.outcome); err != nil {
			return err
		}
	}
	if err := s.checkPlatform(); err != nil {
		return err
	}
	if err := s.checkJobs(ctx, p); err != nil {
		return err
	}
	if _, err := s.store.Scratch(); err != nil && p.Counts()[engine.Run] > 0 { // else each node fails after it has run
		return s.elsewhereStored(err)
	}
	whole := p
	options.Here = true
	if s.outgrown(p) {
		if p, err = s.project.Plan(ctx, options); err != nil {
			return err
		}
	}
	o.run = cmp.Or(o.run, s.newRun(time.Now()))
	ao := campaign.ApplyOptions{PlanOptions: options, First: p, RunID: o.run, Parallelism: o.parallelism,
		FailFast: o.failFast || !o.keepGoing, DeviceWait: o.deviceWait,
		SaveLock: func(l *lockfile.Lock) error { return s.saveLock(l) }}
	if o.try != nil {
		ao.SaveLock = nil // the project does not declare this candidate
	}
	forecast := s.forecast(ctx, p)
	if o.maxGPUHours > 0 && forecast.GPUHours > o.maxGPUHours {
		return &budgetError{fmt.Sprintf("the plan needs about %.3g GPU hours, and -max-gpu-hours allows %g",
			forecast.GPUHours, o.maxGPUHours)}
	}
	if o.show == nil && !o.agent {
		if err := s.moved(ctx); err != nil {
			return err
		}
		if err := view.Preflight(s.stderr, s.style(s.stderr), s.project.Preflight(), wheelBuilds(p),
			false); err != nil {
			return err
		}
	}
	if p.Counts()[engine.Run] > 0 && len(s.project.Spec.Images) > 0 && !fileExists(s.containerMark()) {
		s.reapContainers(ctx, s.place) // the state may have been removed after an apply was killed
	}
	s.note("%s", view.Sum(p, forecast))
	runs, err := runlog.Create(s.runDir(), ao.RunID)
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.arm(o.deadline, cancel)()
	shown, finished := s.watcher(ctx, o, p, stream)
	if o.detach {
		shown = &detach.Detacher{Next: shown, Detach: func(d *detach.Detached) { cancel(d) }}
	}
	watchers := watch.Watchers{runs, &gpuhours.Meter{Limit: o.maxGPUHours, Stop: func(used float64) {
		cancel(&budgetError{fmt.Sprintf("-max-gpu-hours %g is used up (%.3g): nothing more is started; what is "+
			"finished is kept", o.maxGPUHours, used)})
	}}, shown}
	ao.Emit = watchers.Event
	if p.Counts()[engine.Run] > 0 {
		liveLong()
	}
	begun := time.Now()
	applied, err := s.project.Apply(inner, ao)
	s.flush(ctx)
	finished()
	watchers.Close()
	if err == nil {
		s.memorize(ctx, applied.Plan, &o.selection)
	}
	return s.conclude(ctx, applied, err, conclusion{stream: stream, agent: o.agent, failOn: o.failOn, show: o.show,
		waits: s.waitingElsewhere(ctx, whole), took: time.Since(begun), cause: context.Cause(inner)})
}

// watcher returns a watcher that shows the events: as JSON, as a live table, or as lines. The caller must call finished
// when nothing runs any more: the context also ends with the program, and that must not show as an interrupt.
func (s *session) watcher(ctx context.Context, o *applyFlags, p *engine.Plan, stream *watch.Stream) (w watch.Watcher,
	finished func() bool) {
	finished = func() bool { return true }
	if stream != nil {
		return stream, finished
	}
	if o.agent {
		return watch.NewTerse(s.stderr, p), finished
	}
	f, tty := terminal(s.stderr)
	if !tty || s.env["TERM"] == "dumb" || s.env["TERM"] == "" || s.env["CI"] != "" {
		return watch.NewLines(s.stderr, s.style(s.stderr), o.verbose), finished
	}
	live := watch.NewLive(f, s.style(s.stderr), p, func() (int, int) {
		columns, rows, err := term.GetSize(int(f.Fd()))
		if err != nil || columns <= 0 || rows <= 0 {
			return 80, 24
		}
		return columns, rows
	})
	// The table goes at once, even if running commands take long to end.
	finished = context.AfterFunc(ctx, func() {
		live.Close()
		s.note("Interrupted: ending what runs.")
	})
	return live, finished
}

// arm calls stop at the deadline, unless disarm is called before.
func (s *session) arm(d cli.Deadline, stop context.CancelCauseFunc) (disarm func() bool) {
	if d.Time.IsZero() {
		return func() bool { return true }
	}
	return time.AfterFunc(time.Until(d.Time), func() {
		now := s.underWay()
		what := strings.TrimSuffix("what ran was ended: "+now.Text(time.Now()), ": ")
		stop(reached(d, what+"; what is finished is kept"))
	}).Stop
}

// reached returns the error for a deadline that has passed; with tells the consequence.
func reached(d cli.Deadline, with string) error {
	return &budgetError{fmt.Sprintf("-deadline %s is reached: %s", d.Time.Format(time.DateTime), with)}
}

// fileExists reports whether there is a file of any kind at the path.
func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
