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

// suspect is a candidate whose sample failed in a way that passes elsewhere, such as by a signal or by a connection
// that broke, where only the candidate tells of it. The others of its block are measured all the same.
type suspect struct {
	member  Member
	sample  sample.Member // that failed
	failure *engine.Failure
}

// suspected returns such a failure. What is seen from outside, such as a lost device, a container engine that is away
// or a port that another process took, is none. The baseline is no suspect: without it nothing is known of the others.
func (t *trialTask) suspected(env *engine.Env, m Member, err error) *engine.Failure {
	f, ok := errors.AsType[*engine.Failure](err)
	if !ok && failure.NoRoom(err) { // by now it has given up its room
		f, ok = diagnosis.NoRoom(m.Candidate, err), true
	}
	if ok && !m.Baseline && t.trusted().Baseline && f.Class.Retried() && diagnosis.Own(f) &&
		ports.Free(env.Lease.Ports) {
		return f
	}
	return nil
}

// evict removes what a candidate left that took most of the room of the block on the disk, and charges the candidate:
// the others do not pay for it. It reports whether there was one.
func (t *trialTask) evict(env *engine.Env, rec *sample.Record, room workdir.Room) bool {
	name, f := room.Taken(sortedKeys(rec.Members), t.trusted().Name)
	if f == nil || fs.RemoveTree(filepath.Join(env.Out, name)) != nil {
		return false
	}
	own := rec.Members[name]
	if f.Subject = own.Candidate; own.Failure == nil {
		own.Failure = &f.Failure
		rec.Members[name] = own
		t.tellInvalid(env, Member{Candidate: own.Candidate, Bench: t.members[0].Bench}, f)
	}
	return true
}

// A suspect fails three times before that is its own failure, whatever its log says. The pause between its samples is
// at most a second when nothing but the suspect is at the other end.
const convictions, longestPause = 3, time.Second

// retry says how soon a suspect, or the block for its sake, is tried again.
func (s *suspect) retry() *engine.Retry {
	retry := engine.Retry{Attempts: convictions, Backoff: longestPause}
	if r := s.failure.Retry; r != nil && (s.member.Bench.Network || r.Backoff < longestPause) {
		retry.Backoff = r.Backoff
	}
	return &retry
}

// convict measures a suspect again, once the baseline of its block passed. What fails each time is the candidate's own
// failure, and is remembered: measured anew by each apply, it would never end. Earlier attempts at the block that it
// voided in the same way count. When the suspect passes, its failure did pass, and the block is run again in the order
// that it has.
func (t *trialTask) convict(ctx context.Context, env *engine.Env, s suspect, rec *sample.Record) (r sample.Member,
	err error) {
	if why := t.leftOut(s.member, *rec, nil); why != "" {
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
		case t.suspected(env, s.member, err) == nil || ctx.Err() != nil:
			return r, err
		}
	}
	f := s.failure.Failure
	f.Message = fmt.Sprintf("%s, %d times, while the baseline passed", f.Message, times)
	f.Remedy = "see the log: such a failure is " + string(f.Class) + " elsewhere, and here only this candidate had it"
	f.Class, r.Failure = failure.Permanent, &f
	return r, nil
}
