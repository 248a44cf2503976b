package tasks

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/benchgraph/benchgraph/device/ports"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/shell/diagnosis"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// suspect is a candidate whose sample failed in a way that usually passes, such as a signal or a broken connection,
// with only the candidate's word for the cause. The other members of the block are measured all the same.
type suspect struct {
	member  Member
	sample  sample.Member // the failed sample
	failure *engine.Failure
}

// suspected returns the failure of a suspect, or nil. A failure with a cause outside of the candidate makes no suspect:
// a lost device, a container engine that is away, a port that another process took. The baseline is never a suspect,
// since the other members are judged against it. Nor is a member that leaves the disk full after its files are removed.
func (t *trialTask) suspected(env *engine.Env, m Member, err error, room workdir.Room) *engine.Failure {
	f, ok := errors.AsType[*engine.Failure](err)
	if !ok && failure.NoRoom(err) { // GiveUp has already removed its files
		f, ok = diagnosis.NoRoom(m.Candidate, err), true
	}
	if ok && !m.Baseline && t.trusted().Baseline && f.Class.Retried() && diagnosis.Own(f) &&
		ports.Free(env.Lease.Ports) && !(workdir.LacksRoom(err) && room.Short()) {
		return f
	}
	return nil
}

// evict removes the files of the member that took most of the block's room on the disk, and gives that member the
// failure, so that the others do not pay for it. It reports whether there was such a member.
func (t *trialTask) evict(env *engine.Env, rec *sample.Record, room workdir.Room) bool {
	name, f := room.Taken(sortedKeys(rec.Members), t.trusted().Name)
	if f == nil || fs.RemoveTree(filepath.Join(env.Out, name)) != nil {
		return false
	}
	own := rec.Members[name]
	if f.Subject = own.Candidate; own.Failure == nil {
		own.Failure = &f.Failure
		rec.Members[name] = own
		t.emitInvalid(env, Member{Candidate: own.Candidate, Bench: t.members[0].Bench}, f)
	}
	return true
}

// A suspect that fails three times has a failure of its own, whatever class its log suggests. The pause between its
// samples is at most a second, unless the suspect uses the network.
const convictions, longestPause = 3, time.Second

// retry returns how soon a suspect, or its block, is tried again.
func (s *suspect) retry() *engine.Retry {
	retry := engine.Retry{Attempts: convictions, Backoff: longestPause}
	if r := s.failure.Retry; r != nil && (s.member.Bench.Network || r.Backoff < longestPause) {
		retry.Backoff = r.Backoff
	}
	return &retry
}

// convict measures a suspect again, once the rest of its block was measured. Earlier attempts at the block that the
// suspect voided in the same way count. A suspect that fails each time gets the failure as its own, and the record
// keeps it: otherwise every apply would measure the block again, for ever. If the suspect passes, the block is run
// again, in the same order.
func (t *trialTask) convict(ctx context.Context, env *engine.Env, s suspect, rec *sample.Record, room workdir.Room) (
	r sample.Member, err error) {
	if why := t.whyLeftOut(s.member, *rec, nil); why != "" {
		return sample.Member{Candidate: s.member.Candidate, Skipped: why}, nil
	}
	times := 1 + rec.VoidedBy(s.member.Candidate, s.failure.Rule)
	for r = s.sample; times < convictions; times++ {
		select {
		case <-time.After(s.retry().Backoff):
		case <-ctx.Done():
			return r, context.Cause(ctx)
		}
		if err := fs.RemoveTree(filepath.Join(env.Out, s.member.Name)); err != nil {
			return r, diagnosis.Charged(s.member.Candidate, err)
		}
		r, err = t.sample(ctx, env, s.member, &rec.Seeds)
		switch {
		case err == nil && r.Failure != nil:
			return r, nil
		case err == nil:
			s.failure.Retry = s.retry()
			return r, s.failure
		case t.suspected(env, s.member, err, room) == nil || ctx.Err() != nil:
			return r, err
		}
	}
	f := s.failure.Failure
	f.Message = fmt.Sprintf("%s, %d times, while the baseline passed", f.Message, times)
	f.Remedy = "see the log: such a failure is " + string(f.Class) + " elsewhere, and here only this candidate had it"
	f.Class, r.Failure = failure.Permanent, &f
	return r, nil
}
