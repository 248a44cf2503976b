package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/fix"
	"github.com/benchgraph/benchgraph/shell/workdir"
	"github.com/benchgraph/benchgraph/stats"
)

// A check finds out whether a candidate computes the same as the baseline. It runs in the first block and in drawn
// ones: one of 2 to 4, since no verdict rests on fewer, then one of 5 to 8, of 9 to 16 and so on. So a candidate that
// counts blocks never knows which check is the last. In the first block, the check runs after the measured command, so
// that its effect on caches changes no number. In the others, the server is started once more and the check replaces
// the command: this finds a server that answers correctly only after the measured requests, or only outside of the two
// reads of its counters. A candidate that fails a check is wrong, however fast it is.

// checks reports whether a block has the check.
func checks(g *Group, block int) bool {
	spec := g.trusted().Bench
	if spec.Check == nil || block == 1 {
		return spec.Check != nil
	}
	from, to, salt := 2, stats.FewestBlocks, fmt.Sprint(g.Name, " ", spec.Design.Seed)
	for block > to {
		from, to, salt = to+1, 2*to, salt+" "
	}
	sum := sha256.Sum256([]byte(salt))
	random := rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])))
	return block == from+random.IntN(to-from+1)
}

// describeCheck adds the check to the key of a block.
func (t *trialTask) describeCheck(d *cache.Description, c *hclspec.Check) {
	t.refs.DescribeCommand(d, "check", c.Command)
	if c.Source != (hclspec.Address{}) {
		d.Add("check source", t.refs.Label(c.Source))
	}
	for _, s := range c.Same {
		d.Add("same", s.Pattern, float(s.Tolerance))
	}
}

// hasOwnCheck reports whether the member's check has a lifecycle of its own.
func (l *lifecycle) hasOwnCheck() bool {
	return l.t.checked && l.t.block > 1 && l.m.Bench.Server != nil
}

// againDir holds the files of a check's lifecycle, in the directory of its member.
const againDir = "again"

// checkApart runs the check in a lifecycle of its own, after the measured one. Both use the same paths, so that a
// server cannot tell in which one it runs.
func (l *lifecycle) checkApart(ctx context.Context) error {
	if !l.hasOwnCheck() || !hasCommand(l.m.Bench.Check) {
		return nil
	}
	aside, err := os.MkdirTemp(l.env.Out, "measured-")
	if err != nil {
		return err
	}
	measured := filepath.Join(aside, l.m.Name)
	if err := errors.Join(workdir.Renew(l.env), os.Rename(l.out, measured)); err != nil {
		return err
	}
	own := &lifecycle{t: l.t, env: l.env, m: l.m, out: l.out, instead: true, seeds: l.seeds}
	dir, err := own.open(ctx)
	if err == nil {
		err = own.live(ctx, dir, own.measure)
	}
	left := os.Rename(filepath.Join(l.out, sample.CheckDir), filepath.Join(measured, sample.CheckDir))
	if errors.Is(left, os.ErrNotExist) { // the lifecycle ended before the check
		left = nil
	}
	return errors.Join(err, left, os.Rename(l.out, filepath.Join(measured, againDir)), os.Rename(measured, l.out),
		os.Remove(aside))
}

// hasCommand reports whether there is a check with a command.
func hasCommand(c *hclspec.Check) bool {
	return c != nil && (c.Command.Shell != nil || c.Command.Argv != nil)
}

// check runs the check's command beside the member's server, or by itself with the member's data.
func (l *lifecycle) check(ctx context.Context, server *shell.Server) error {
	c := l.m.Bench.Check
	if !l.t.checked || !hasCommand(c) {
		return nil
	}
	l.progress("check")
	dir, err := os.MkdirTemp(l.env.Work, "check-")
	if err != nil {
		return err
	}
	image := l.m.Bench.Image
	if server != nil && l.m.client != (hclspec.Address{}) {
		image = l.m.client
	}
	sh, err := l.enter(ctx, filepath.Join(dir, "work"), sample.CheckDir, c.Source, image)
	if err != nil {
		return err
	}
	err = l.t.refs.LayData(l.env, filepath.Join(dir, "work"), l.m.Bench.Data)
	if err == nil && server == nil { // the check may start the program again
		err = l.layCaches(sh)
	}
	if err != nil {
		return err
	}
	l.seed(sh)
	return l.asWrong(l.runCheck(ctx, server, sh))
}

func (l *lifecycle) runCheck(ctx context.Context, server *shell.Server, sh *fix.Shell) error {
	c := l.m.Bench.Check
	if server == nil {
		return sh.Run(ctx, "run", c.Command, c.Timeout, nil)
	}
	return server.Client(ctx, sh.Shell, c.Command, c.Timeout, nil)
}

// asWrong turns a failure of a check into one with the rule Wrong, unless it may pass or a fix may mend it.
func (l *lifecycle) asWrong(err error) error {
	f, ok := errors.AsType[*engine.Failure](err)
	if !ok {
		return err
	}
	_, fixable := fix.Wanted(f.Rule)
	if f.Message = "the check failed: " + f.Message; fixable || f.Class.Retried() {
		return err
	}
	f.Class, f.Rule = failure.Permanent, sample.Wrong
	f.Remedy = "the log shows what the check found"
	if l.m.Baseline {
		f.Rule, f.Remedy = sample.CheckFailed, "the check must pass for the baseline: correct it"
	}
	return err
}

// compareFiles compares the files of all candidates of a checked block with the baseline's, and records failures.
func (t *trialTask) compareFiles(env *engine.Env, rec *sample.Record) error {
	base := t.trusted()
	whole := func(m Member) bool {
		own, in := rec.Members[m.Name]
		return in && own.Failure == nil && own.Skipped == ""
	}
	if !t.checked || !base.Baseline || !whole(base) {
		return nil
	}
	for _, m := range t.members {
		if m.Baseline || !whole(m) || m.Bench.Check == nil {
			continue
		}
		for _, s := range m.Bench.Check.Same {
			same := sample.Same{Pattern: s.Pattern, Tolerance: s.Tolerance, Passes: m.Bench.Design.Passes()}
			diff, err := sample.Differ(filepath.Join(env.Out, m.Name), filepath.Join(env.Out, base.Name), same)
			failed, f := m, &engine.Failure{Failure: failure.Failure{
				Class: failure.Permanent, Rule: sample.Wrong, Stage: "verify", Subject: m.Candidate,
				Message: "its results differ from those of " + base.Candidate, Evidence: diff,
				Remedy: "correct the candidate, or allow a tolerance in same",
			}}
			switch {
			case err != nil && !errors.Is(err, os.ErrNotExist):
				return err
			case err != nil:
				failed, f.Rule, f.Subject, f.Message, f.Evidence = base, sample.CheckFailed, base.Candidate,
					"the baseline's check left no file to compare", err.Error()
				f.Remedy = "let the command write the file to $OUT, or correct the name in same"
			case diff == "":
				continue
			}
			own := rec.Members[failed.Name]
			own.Failure = &f.Failure
			rec.Members[failed.Name] = own
			fmt.Fprintf(env.Log, "%s: %s: %s\n", failed.Candidate, f.Message, f.Evidence)
			t.emitInvalid(env, failed, f)
			break
		}
	}
	return nil
}
