package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// end takes back the lease of an attempt, leaves the gates, and concludes the attempt.
func (r *run) end(s *Step, a *attempt) {
	r.forget(a)
	r.quiet = false
	a.lease.Release()
	call(a.leave)
	r.conclude(s, a)
}

// forget removes an attempt from the list of those that hold a lease.
func (r *run) forget(a *attempt) {
	if i := slices.Index(r.active, a); i >= 0 {
		r.active = slices.Delete(r.active, i, i+1)
	}
}

// conclude ends a step after its last attempt, or has the step wait for the next attempt.
func (r *run) conclude(s *Step, a *attempt) {
	event := Event{
		Type: NodeFailed, Address: s.Node.Address, Key: s.Key, Attempt: a.Number, Duration: a.Duration,
		Queued: a.Queued, Log: r.logPath(a.ID),
	}
	if a.err == nil {
		r.record(a)
		r.result.Done++
		event.Type = NodeDone
		r.emit(event)
		r.set(s, present)
		s.found.entry, a.entry.Transcript = &a.entry.Meta, "" // the store has it, and it is long
		r.settleAll(r.finish(s))
		return
	}
	if r.ctx.Err() != nil {
		r.set(s, missing)
		a.Failure = &failure.Failure{Class: failure.Transient, Rule: failure.Interrupted, Message: failure.Interrupted}
		if s.Node.Remote == nil { // a job may go on
			r.record(a)
		}
		event.Reason, event.Failure = failure.Interrupted, a.Failure
		r.emit(event)
		return
	}
	failure := r.asFailure(a.err)
	retry := DefaultRetry(failure.Class)
	if failure.Retry != nil {
		retry = *failure.Retry
	}
	a.Failure = &failure.Failure
	r.record(a)
	a.Failure = r.kept(a)
	again := a.Number < retry.Attempts && failure.Class.Retried() && !r.stopping()
	event.Failure, event.Retrying = a.Failure, again
	if again {
		pause := retry.Backoff << min(a.Number-1, maxDoublings)
		event.Reason = "tried again in " + pause.String()
		r.emit(event)
		r.pause(s, pause)
		return
	}
	event.Log = r.logOf(&a.Attempt)
	r.emit(event)
	r.failed = true
	r.result.Failed++
	r.result.Failures = append(r.result.Failures, Failed{s.Node.Address, *a.Failure, event.Log})
	r.set(s, afterFailure(a.Failure))
	s.Failure, s.found.entry = &a.Attempt, nil
	r.settleAll(r.finish(s))
}

// maxDoublings limits the pause between attempts.
const maxDoublings = 10

// record writes an attempt to the journal. An error ends the apply: an attempt without a record is GPU time lost.
func (r *run) record(a *attempt) {
	if err := r.Journal.Record(a.Attempt); err != nil && r.fatal == nil {
		r.fatal = fmt.Errorf("journal: %w", err)
	}
}

// kept returns the failure of an attempt as the journal stored it, and as the next plan reads it.
func (r *run) kept(a *attempt) *failure.Failure {
	if last, _ := r.Journal.Last(a.Address, a.Key); last.ID == a.ID {
		return last.Failure
	}
	return a.Failure
}

// asFailure gives an error a class. An error without one is a fault of this machine or of the program: infra.
func (r *run) asFailure(err error) *Failure {
	f, ok := errors.AsType[*Failure](err)
	full := failure.NoRoom(err)
	if ok && !(full && f.Class == failure.Permanent) { // a full disk is not permanent
		return f
	}
	f = &Failure{Failure: failure.Failure{Class: failure.Infra, Message: err.Error()}, Err: err}
	if full {
		f.Rule, f.Retry = DiskFull, &Retry{Attempts: 1}
		f.Remedy = "free some space (" + r.Terms.FreeSpace + ") and apply again"
	}
	return f
}

// logOf returns the path of the log with the output of a failure, if that log is on this machine; else the attempt's
// log.
func (r *run) logOf(a *journal.Attempt) string {
	path := r.logPath(a.Failure.Log)
	if _, err := os.Stat(path); a.Failure.Log == "" || err != nil {
		return r.logPath(a.ID)
	}
	return path
}

func (r *run) logPath(id string) string { return filepath.Join(r.LogDir, id+".log") }

// TranscriptOf returns the path of the transcript of a failed attempt, given the path of the log.
func TranscriptOf(log string) string { return strings.TrimSuffix(log, ".log") + ".transcript" }

// longestTranscript limits the transcript in an entry, in bytes: a plan reads the entries of all nodes.
const longestTranscript = 4 << 20

// transcript returns the transcript as one line of JSON; "" if it is empty or too long, which fails no attempt.
func (e *Env) transcript() string {
	text, _ := json.Marshal(e.Transcript)
	if e.Transcript == nil || len(text) > longestTranscript {
		return ""
	}
	return string(text)
}

func (r *run) openLog(id string) (*fs.Log, error) {
	log, err := fs.NewLog(r.logPath(id))
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(r.LogDir, 0o755); err != nil {
			return nil, err
		}
		log, err = fs.NewLog(r.logPath(id))
	}
	return log, err
}
