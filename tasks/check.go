package tasks

import (
	"context"
	"crypto/sha256"
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
	"github.com/benchgraph/benchgraph/source/git/patch"
	"github.com/benchgraph/benchgraph/stats"
)

// A check finds out whether a candidate computes the same as the baseline. It runs in the first block and in others
// that are drawn: one of 2 to 4, as no verdict rests on fewer, then one of as many as there were before (5 to 8, 9 to
// 16 and so on), so that a candidate which counts blocks cannot tell when it is looked at for the last time. In the
// first block it comes after the measured command, so what it does to caches changes no number. In the others, the
// server is started once more, and the check takes the place of the command: a server that answers rightly only after
// as many requests as are measured, or outside of the two looks at its counters, gives wrong answers there. A
// candidate that fails a check is wrong, however fast it is.

// checks says whether a block of a group has the check. The draw depends on what the patches change, and not on what an
// export writes around that: blocks would be measured again.
func (p *Drawing) checks(g *Group, block int) bool {
	spec := g.trusted().Bench
	if spec.Check == nil || block == 1 {
		return spec.Check != nil
	}
	from, to := 2, stats.FewestBlocks
	for ; block > to; to *= 2 {
		from = to + 1
	}
	salt := fmt.Appendln(nil, g.Name, spec.Design.Seed, from)
	for _, m := range g.Members {
		if c := p.candidates[m.Candidate]; c != nil && c.Patch != "" {
			text, _ := p.patchText(c.Patch) // what cannot be read is told elsewhere
			salt = append(salt, patch.Changes(text)...)
		}
	}
	random := rand.New(rand.NewChaCha8(sha256.Sum256(salt)))
	return block == from+random.IntN(to-from+1)
}

// describeCheck adds the check to the key of a block that has it.
func (t *trialTask) describeCheck(d *cache.Description, c *hclspec.Check) {
	t.refs.DescribeCommand(d, "check", c.Command)
	if c.Source != (hclspec.Address{}) {
		d.Add("check source", t.refs.Label(c.Source))
	}
	for _, s := range c.Same {
		d.Add("same", s.Pattern, float(s.Tolerance))
	}
}

// apart says whether the check of the member has a lifecycle of its own.
func (l *lifecycle) apart() bool { return l.t.checked && l.t.block > 1 && l.m.Bench.Server != nil }

// againDir is what the lifecycle of a check left, in the directory of its member.
const againDir = "again"

// checkApart runs the check in a lifecycle of its own, once the measured one is over. All paths are those of the
// measured one, so that they do not tell a server which of both it is in.
func (l *lifecycle) checkApart(ctx context.Context) error {
	if !l.apart() || !runs(l.m.Bench.Check) {
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
	if errors.Is(left, os.ErrNotExist) { // it did not come so far
		left = nil
	}
	return errors.Join(err, left, os.Rename(l.out, filepath.Join(measured, againDir)), os.Rename(measured, l.out),
		os.Remove(aside))
}

// runs says whether there is a check with a command.
func runs(c *hclspec.Check) bool {
	return c != nil && (c.Command.Shell != nil || c.Command.Argv != nil)
}

// check runs the check's command beside the member's server, or by itself with the member's data.
func (l *lifecycle) check(ctx context.Context, server *shell.Server) error {
	c := l.m.Bench.Check
	if !l.t.checked || !runs(c) {
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
	if err == nil && server == nil { // it may start the program anew
		err = l.layCaches(sh)
	}
	if err != nil {
		return err
	}
	l.seed(sh)
	return l.wrong(l.runCheck(ctx, server, sh))
}

func (l *lifecycle) runCheck(ctx context.Context, server *shell.Server, sh *fix.Shell) error {
	c := l.m.Bench.Check
	if server == nil {
		return sh.Run(ctx, "run", c.Command, c.Timeout, nil)
	}
	return server.Client(ctx, sh.Shell, c.Command, c.Timeout, nil)
}

// wrong makes the failure of a check that of the rule wrong. What may pass, and what the machine did, stays as it is.
func (l *lifecycle) wrong(err error) error {
	f, ok := errors.AsType[*engine.Failure](err)
	if !ok || f.Class.Retried() {
		return err
	}
	if _, fixable := fix.Wanted(f.Rule); fixable {
		return err
	}
	f.Class, f.Rule, f.Message = failure.Permanent, sample.Wrong, "the check failed: "+f.Message
	f.Remedy = "the log shows what the check found"
	if l.m.Baseline {
		f.Rule, f.Remedy = sample.CheckFailed, "the check must pass for the baseline: correct it"
	}
	return err
}

// agree holds the files of all candidates of a checked block against the baseline's, and notes those that are wrong.
func (t *trialTask) agree(env *engine.Env, rec *sample.Record) error {
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
					"the check cannot be held against anything", err.Error()
				f.Remedy = "let the command write the file to $OUT, or correct the name in same"
			case diff == "":
				continue
			}
			own := rec.Members[failed.Name]
			own.Failure = &f.Failure
			rec.Members[failed.Name] = own
			fmt.Fprintf(env.Log, "%s: %s: %s\n", failed.Candidate, f.Message, f.Evidence)
			t.tellInvalid(env, failed, f)
			break
		}
	}
	return nil
}
