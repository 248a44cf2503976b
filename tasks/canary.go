package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/shell/transcript"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// A canary is a workload of known speed that runs on a block's devices before each member and after the last one. It
// does not depend on the candidates, so a change of its speed is a change of the machine. A large change voids the
// block; verdicts take a small one into account: see docs/adr/0030.

// Directories for the raw output of a canary have names with this prefix and one of these endings, or a number.
const (
	canaryDir    = "canary."
	canaryBefore = canaryDir + "before"
	canaryAfter  = canaryDir + "after"
)

// canary is the canary of one block.
type canary struct {
	spec   *hclspec.Canary
	t      *trialTask
	env    *engine.Env
	place  sample.CanaryPlace
	record sample.Canary
	begun  bool // it has run before a member
}

// canary returns the block's canary; nil if there is none.
func (t *trialTask) canary(env *engine.Env, in machine.Instance) *canary {
	spec := t.trusted().Bench.Canary
	if spec == nil {
		return nil
	}
	return &canary{spec: spec, t: t, env: env, place: sample.CanaryPlaceOf(t.group, in)}
}

// trusted returns the member whose definitions count for the block: the unpatched baseline, or the first member.
func (t *trialTask) trusted() Member { return trusted(t.members) }

func trusted(members []Member) Member {
	return members[max(0, slices.IndexFunc(members, func(m Member) bool { return m.Baseline }))]
}

// before runs the canary ahead of a member. It fails if the number differs too much from the block's first one, or from
// those of other blocks.
func (c *canary) before(ctx context.Context, member string) error {
	if c == nil {
		return nil
	}
	name := canaryBefore
	if c.begun {
		name = fmt.Sprintf("%s%d", canaryDir, len(c.record.Between)+2)
	}
	r, err := c.run(ctx, name)
	if err != nil {
		return err
	}
	r.Member = member
	if !c.begun {
		c.record.Before, c.begun = r, true
		return c.judge(r)
	}
	c.record.Between = append(c.record.Between, r)
	return c.compare(r, "before "+member)
}

// compare compares a run with the first one of the block, and with those of other blocks.
func (c *canary) compare(r sample.CanaryRun, when string) error {
	if before := c.record.Before.Value; differs(r.Value, before, c.spec.Tolerance) {
		return c.void("%s before the block and %s %s (%s)", c.record.Figure(before), c.record.Figure(r.Value), when,
			sample.Change(r.Value, before))
	}
	return c.judge(r)
}

// after runs the canary after the last member, and decides whether the block counts.
func (c *canary) after(ctx context.Context) (err error) {
	if c == nil || !c.begun {
		return nil
	}
	if c.record.After, err = c.run(ctx, canaryAfter); err != nil {
		return err
	}
	if err := c.compare(c.record.After, "after it"); err != nil {
		return err
	}
	values := []float64{c.record.Before.Value, c.record.After.Value}
	for _, r := range c.record.Between {
		values = append(values, r.Value)
	}
	c.t.p.canaries.Note(c.place, c.t.at, values)
	if g := c.t.p.GPUs; g != nil {
		g.Trust(c.env.Lease.GPUs)
	}
	return nil
}

// judge compares a run with those of the group's blocks that count and ran on the same devices.
func (c *canary) judge(r sample.CanaryRun) error {
	usual, blocks := c.t.p.canaries.Usual(c.place, c.t.at)
	if blocks >= fewestBlocks && differs(r.Value, usual, c.spec.Tolerance) {
		return c.void("%s, and %s is usual here, the median of %d blocks (%s)", c.record.Figure(r.Value),
			c.record.Figure(usual), blocks, sample.Change(r.Value, usual))
	}
	return nil
}

// fewestBlocks is the number of blocks that define the usual speed: among fewer, a single odd one would decide.
const fewestBlocks = 3

// differs reports whether two numbers differ by more than a tolerance, relative to the second.
func differs(value, from, tolerance float64) bool { return math.Abs(value-from) > tolerance*from }

// void returns the failure of a block whose canary changed. Devices on which that happens repeatedly are leased last.
func (c *canary) void(format string, args ...any) error {
	if g := c.t.p.GPUs; g != nil {
		for _, d := range g.Doubt(c.env.Lease.GPUs) {
			c.env.Emit(engine.Event{Type: engine.Note,
				Reason: fmt.Sprintf("device %d (%s) is leased only when no other is free: the canary changed on it "+
					"twice in a row", d.Index, d.UUID)})
		}
	}
	return c.uncounted("canary", nil, fmt.Sprintf("the block does not count: its canary changed by more than %g %%",
		100*c.spec.Tolerance), fmt.Sprintf(format, args...),
		"find out what else uses the machine or slows it down, or raise tolerance in the canary")
}

// failed returns the failure of a block whose canary gave no number. A retry would not either.
func (c *canary) failed(message, evidence, remedy string) error {
	return c.uncounted("canary_failed", &engine.Retry{Attempts: 1}, message, evidence, remedy)
}

// uncounted returns the failure of a block because of its canary. It says nothing about the members.
func (c *canary) uncounted(rule string, retry *engine.Retry, message, evidence, remedy string) error {
	f := &engine.Failure{Retry: retry, Failure: failure.Failure{Class: failure.Infra, Rule: rule, Stage: "run",
		Message: message, Evidence: evidence, Remedy: remedy}}
	c.env.Emit(engine.Event{Type: engine.SampleInvalid, Failure: &f.Failure, Data: map[string]any{
		"benchmark": c.t.trusted().Bench.Address.Name, "block": c.t.block,
	}})
	return f
}

// run runs the canary once and reads its number. A failure of the canary says nothing about the candidates.
func (c *canary) run(ctx context.Context, name string) (sample.CanaryRun, error) {
	r := sample.CanaryRun{Start: time.Now()}
	fmt.Fprintf(c.env.Log, "== block %d: %s ==\n", c.t.block, name)
	out := filepath.Join(c.env.Out, name)
	var err error
	r.Watched, err = c.t.observed(ctx, c.env, func(ctx context.Context) error { return c.live(ctx, name, out) })
	r.Duration = time.Since(r.Start)
	f, ok := errors.AsType[*engine.Failure](err)
	switch {
	case ok && !f.Class.Retried():
		return r, c.failed("nothing was measured: the canary failed: "+f.Message, f.Evidence,
			cmp.Or(f.Remedy, "mend the canary's command; its output is in the log"))
	case err != nil:
		return r, err
	}
	s, err := sample.CanaryValue(c.spec, out)
	if err != nil {
		return r, c.failed("nothing was measured: the canary ran, but "+err.Error(), "",
			"correct match or json in the canary; its output is in the log")
	}
	r.Value, c.record.Unit = s.Value, s.Unit
	fmt.Fprintf(c.env.Log, "benchgraph: the canary says %s\n", c.record.Figure(r.Value))
	return r, nil
}

// live runs the canary's command where the block's client runs.
func (c *canary) live(ctx context.Context, name, out string) error {
	m := c.t.trusted()
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	m.cures, m.built = nil, nil // a canary's failure teaches no fixes
	env, end, err := workdir.Apart(c.env, name)
	if err != nil {
		return err
	}
	defer end()
	l := &lifecycle{t: c.t, env: env, m: m, out: out}
	transcript.Of(c.env).Section(c.t.at.String(), name, false)
	l.progress(name)
	sh, err := l.enter(ctx, filepath.Join(env.Work, name), sample.OutDir, m.Bench.Client,
		cmp.Or(m.client, m.Bench.Image))
	if err != nil {
		return err
	}
	stdout, err := workdir.Create(filepath.Join(out, sample.StdoutFile))
	if err != nil {
		return err
	}
	ran := errors.Join(sh.Run(ctx, "run", c.spec.Command, c.spec.Timeout, stdout), stdout.Close())
	if err := workdir.Admit(ctx, c.env, out, name, sh.Secrets, len(c.t.members)); err != nil {
		return sh.Secrets.Conceal(errors.Join(err, fs.RemoveTree(out)))
	}
	return sh.Secrets.Conceal(ran)
}

// RecallCanaries reads, before a wave, the numbers of canaries in stored blocks. It reads their raw output, since the
// definition of the canary may have changed.
func (p *Drawing) RecallCanaries(ctx context.Context, plan *engine.Plan) error {
	for _, g := range p.Groups {
		if g.Members[0].Bench.Canary == nil {
			continue
		}
		for _, t := range g.Trials {
			step, ok := plan.Step(t.At.String())
			if !ok {
				continue
			}
			end, err := plan.End(ctx, p.Store, step)
			if err != nil {
				return err
			}
			if end.Entry.Dir != "" {
				if err := p.recallCanary(g, t.At, end.Entry); err != nil {
					return fmt.Errorf("%s: %w", t.At, err)
				}
			}
		}
	}
	return nil
}

func (p *Services) recallCanary(g *Group, trial hclspec.Address, e cache.Entry) error {
	rec, err := sample.ReadRecord(e)
	if err != nil || rec.Canary == nil {
		return err
	}
	var values []float64
	files, err := os.ReadDir(e.Dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		name := f.Name()
		if !strings.HasPrefix(name, canaryDir) {
			continue
		}
		s, err := sample.CanaryValue(g.Members[0].Bench.Canary, filepath.Join(e.Dir, name))
		if err != nil {
			return nil // the present definition finds no number in it
		}
		values = append(values, s.Value)
	}
	p.canaries.Note(sample.CanaryPlaceOf(g.Name, rec.Instance), trial, values)
	return nil
}
