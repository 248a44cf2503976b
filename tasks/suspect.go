package tasks

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/shell"
)

// suspect is a candidate whose sample failed in a way that passes elsewhere, such as by a connection that broke.
type suspect struct {
	member  Member
	failure *engine.Failure
}

// ownServers returns such a failure of a client that reaches nothing but the candidate's own server. A failure of the
// container engine is none. The baseline is no suspect, as without it nothing is known of the others.
func ownServers(m Member, err error) *engine.Failure {
	f, ok := errors.AsType[*engine.Failure](err)
	if !ok || m.Baseline || m.Bench.Server == nil || m.Bench.Network || f.Class != failure.Transient ||
		f.Stage != "run" || f.Rule == shell.EngineRule {
		return nil
	}
	return f
}

// baselinePassed says whether the baseline was measured in this block: the machine and the harness are as they should
// be.
func (t *trialTask) baselinePassed(rec *sample.Record) bool {
	return slices.ContainsFunc(t.members, func(m Member) bool {
		r, measured := rec.Members[m.Name]
		return m.Baseline && measured && r.Failure == nil && r.Skipped == ""
	})
}

// convictions is how often in a row a suspect fails before that is its own failure.
const convictions = 3

// convict measures a suspect again, once the baseline of its block passed. What fails each time is the candidate's own
// failure, and is remembered: measured anew by each apply, it would never end. When the suspect passes, its failure did
// pass, and the block is run again in the order that it has.
func (t *trialTask) convict(ctx context.Context, env *engine.Env, s suspect) (r sample.Member, err error) {
	for range convictions - 1 {
		if s.failure.Retry != nil {
			select {
			case <-time.After(s.failure.Retry.Backoff):
			case <-ctx.Done():
				return r, context.Cause(ctx)
			}
		}
		for _, dir := range []string{env.Out, env.Work} {
			if err := fs.RemoveTree(filepath.Join(dir, s.member.Name)); err != nil {
				return r, err
			}
		}
		r, err = t.sample(ctx, env, s.member)
		switch {
		case err == nil && r.Failure != nil:
			return r, nil
		case err == nil:
			return r, s.failure
		case ownServers(s.member, err) == nil:
			return r, err
		}
	}
	f := s.failure.Failure
	f.Class = failure.Permanent
	f.Message = fmt.Sprintf("%s, %d times in a row, while the baseline passed", f.Message, convictions)
	f.Remedy = "see the server's log: nothing but the candidate is at the other end"
	r.Failure = &f
	return r, nil
}
