package jobtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/executor/job"
)

// The end of a job is the end of its script.
func (s *story) ends() {
	type end struct{ code, signal int }
	wants := map[string]end{"true": {}, "exit 3": {code: 3}, "exit 124": {code: 124}, "exit 255": {code: 255},
		"exit 137": {code: 137}, "exec /nonexistent": {code: 127}, "kill -KILL $$": {signal: 9},
		"kill -TERM $$": {signal: 15}}
	if s.Container { // the script is the container's first process, and its own signals cannot end it
		delete(wants, "kill -KILL $$")
		delete(wants, "kill -TERM $$")
		wants["exit 137"] = end{signal: 9}
		wants["sh -c 'kill -KILL $$'; exit $?"] = end{signal: 9}
		wants["sh -c 'kill -TERM $$'; exit $?"] = end{signal: 15}
	}
	ids := map[string]job.ID{}
	for script := range wants {
		ids[script] = Submit(s, s.client, s.job(script))
	}
	for script, id := range ids {
		got := Wait(s, s.client, id)
		state := job.Failed
		if script == "true" {
			state = job.Completed
		}
		if (end{got.Code, got.Signal}) != wants[script] || got.State != state || got.Lost || got.Held != "" ||
			got.Node == "" || got.Submitted.IsZero() || got.Started.Before(got.Submitted) ||
			time.Since(got.Submitted) > time.Hour {
			s.Errorf("%s: %+v", script, got)
		}
		if id := s.finds(id.Key()); id != "" {
			s.Errorf("%s has ended, and is found", id)
		}
	}
}

// The log has the whole output of a job, also of a failed one.
func (s *story) log() {
	var want strings.Builder
	for i := range 500 {
		fmt.Fprintf(&want, "out %d\nerr %d\n", i, i)
	}
	j := s.job(`i=0; while [ $i -lt 500 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done
printf 'a\033[31mb\rc\000d\377e'; exit 3`)
	hostile := "a\033[31mb\rc\000d\377e"
	if s.Text {
		hostile = strings.ToValidUTF8(hostile, "\uFFFD")
	}
	id := Submit(s, s.client, j)
	if end := Wait(s, s.client, id); end.Code != 3 {
		s.Errorf("%+v", end)
	}
	if got := Printed(s, s.client, id); got != want.String()+hostile {
		s.Errorf("the log has %d bytes, want %d; it ends with %q", len(got), want.Len()+len(hostile),
			got[max(0, len(got)-40):])
	}
}

// reader reports when something has been written to it.
type reader struct {
	strings.Builder
	first sync.Once
	seen  chan struct{} // closed after the first write
}

func (r *reader) Write(p []byte) (int, error) {
	defer r.first.Do(func() { close(r.seen) })
	return r.Builder.Write(p)
}

// The output of a running job can be read. The log of a job that never ran is empty.
func (s *story) runningLog() {
	s.plays(s.Dir != "" && s.Hold != nil)
	lines, release := s.goes()
	logger := s.client.(job.Logger)
	id := Submit(s, s.client, s.job("echo first\n"+lines+"echo last"))
	Reach(s, s.client, id, job.Running)
	if s.Follows {
		r, done := &reader{seen: make(chan struct{})}, make(chan error, 1)
		go func() { done <- logger.Log(s.Context(), id, r) }()
		<-r.seen
		ctx, stop := context.WithCancelCause(s.Context())
		other, mine := &reader{seen: make(chan struct{})}, errors.New("enough")
		go func() { <-other.seen; stop(mine) }()
		if err := logger.Log(ctx, id, other); !errors.Is(err, mine) || other.String() != "first\n" {
			s.Errorf("%q, %v", other.String(), err)
		}
		release()
		if err := <-done; err != nil || r.String() != "first\nlast\n" {
			s.Errorf("%q, %v", r.String(), err)
		}
	} else {
		s.until(func() bool { return Printed(s, s.client, id) == "first\n" })
		release()
	}
	s.completes(id, "first\nlast\n")
	s.Hold(true)
	queued := Submit(s, s.client, s.job("echo never"))
	s.cancels(queued)
	if text := Printed(s, s.client, queued); text != "" {
		s.Errorf("a job that never ran has printed %q", text)
	}
}

// All clients that submit the same work get the same job, in one process and in several. After its end, a submission
// makes a new job.
func (s *story) oneKey() {
	s.plays(s.Hold != nil)
	s.Hold(true) // a job that another process has made meanwhile is cancelled before it runs
	j := s.job("echo once\n" + printing)
	j.Key += strings.Repeat("-", job.MaxKey-len(j.Key))
	clients := []job.Scheduler{s.client, s.Client(), s.Client(), s.Client()}
	ids, founds := make([]job.ID, 2*len(clients)), make([]bool, 2*len(clients))
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			var err error
			if ids[i], founds[i], err = clients[i/2].Submit(s.Context(), j); err != nil {
				s.Error(err)
			}
		})
	}
	all.Wait()
	made := 0
	for i, id := range ids {
		if !founds[i] {
			made++
		}
		if id != ids[0] {
			s.Fatalf("several jobs: %v", ids)
		}
	}
	if made != 1 {
		s.Errorf("%d submissions made one job", made)
	}
	if id := s.finds(j.Key); id != ids[0] {
		s.Errorf("found %q", id)
	}
	if id := s.finds(j.Key[1:]); id != "" {
		s.Errorf("found %s, which nobody has submitted", id)
	}
	s.Hold(false)
	text := s.completes(ids[0], "")
	if s.checkRequest(text, j.Request); strings.Count(text, "once\n") != 1 {
		s.Errorf("the job ran several times: %s", text)
	}
	next := Submit(s, s.client, j)
	if Wait(s, s.client, next); next == ids[0] {
		s.Errorf("%s has ended, and a submission of its key got it", next)
	}
	if end := Wait(s, s.client, ids[0]); end.Lost != s.Deletes {
		s.Errorf("%+v", end)
	}
}

// Another client finds a job by its key and follows it to its end.
func (s *story) anotherClient() {
	id := Submit(s, s.client, s.job("sleep 600"))
	other := s.Client()
	if got := s.finds(id.Key()); got != id {
		s.Errorf("found %q, want %s", got, id)
	}
	if got, found, err := other.Submit(s.Context(), job.Job{Key: id.Key(), Name: "x", Script: "true"}); got != id ||
		!found || err != nil {
		s.Errorf("%s, %v, %v; want %s", got, found, err, id)
	}
	follows := []*following{s.follow(id), follow(s.Context(), s, other, id)}
	var nodes []string
	for _, f := range follows {
		st := f.reaches(job.Running)
		nodes = append(nodes, st.Node)
	}
	if nodes[0] == "" || nodes[0] != nodes[1] {
		s.Errorf("it runs on %q", nodes)
	}
	if err := other.Cancel(s.Context(), id); err != nil {
		s.Error(err)
	}
	for _, f := range follows {
		s.cancelled(f.wait())
	}
}

func (s *story) cancelled(end job.End) {
	s.Helper()
	if end.Held != "" || !s.Deletes && (end.State != "CANCELLED" || end.Lost) {
		s.Errorf("%+v", end)
	}
}

// The end of a context ends a wait, not the job. A submission whose context has ended makes no job.
func (s *story) contexts() {
	mine := errors.New("enough")
	ctx, stop := context.WithCancelCause(s.Context())
	id := Submit(s, s.client, s.job("sleep 600"))
	f := follow(ctx, s, s.client, id)
	f.reaches(job.Running)
	stop(mine)
	if <-f.done; !errors.Is(f.err, mine) {
		s.Errorf("%+v, %v", f.end, f.err)
	}
	if found := s.finds(id.Key()); found != id {
		s.Errorf("the end of a wait has ended the job: found %q", found)
	}
	j := s.job("sleep 600")
	if made, _, err := s.client.Submit(ctx, j); made != "" || !errors.Is(err, mine) {
		s.Errorf("%q, %v", made, err)
	}
	if _, err := s.client.Wait(ctx, id, nil); !errors.Is(err, mine) {
		s.Errorf("a wait whose context has ended: %v", err)
	}
	if made := s.finds(j.Key); made != "" {
		s.Errorf("%s was submitted", made)
		s.cancels(made)
	}
	s.cancels(id)
}

// A queued job and a running one can be cancelled, more than once. An ended job keeps its end.
func (s *story) cancel() {
	ended := Submit(s, s.client, s.job("exit 3"))
	Wait(s, s.client, ended)
	running := s.follow(Submit(s, s.client, s.job("sleep 600")))
	running.reaches(job.Running)
	all := []*following{running}
	if s.Hold != nil {
		s.Hold(true)
		queued := s.follow(Submit(s, s.client, s.job("sleep 600")))
		queued.reaches(job.Pending)
		all = append(all, queued)
	}
	for _, f := range all {
		s.cancels(f.id)
		if found := s.finds(f.id.Key()); found != "" {
			s.Errorf("%s is found after it was cancelled", found)
		}
		s.cancelled(f.wait())
		s.cancels(f.id)
		s.cancelled(Wait(s, s.client, f.id))
	}
	s.cancels(ended)
	if end := Wait(s, s.client, ended); end.Lost != s.Deletes || !s.Deletes && end.Code != 3 {
		s.Errorf("%+v", end)
	}
	if s.Never != "" {
		s.cancels(s.Never)
	}
}

// When Cancel returns, no process of the job is left, even if the job ignores SIGTERM.
func (s *story) stubborn() {
	s.plays(s.Dir != "")
	path := filepath.Join(s.Dir, "lock")
	id := Submit(s, s.client, s.job("trap '' TERM\nexec 9<>'"+path+"'\nflock 9\nwhile :; do sleep 0.1; done"))
	Reach(s, s.client, id, job.Running)
	lock := func() error {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			s.Fatal(err)
		}
		defer f.Close()
		return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	s.until(func() bool { return lock() != nil })
	s.cancels(id)
	if err := lock(); err != nil {
		s.Errorf("a process of the job is left after it was cancelled: %v", err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The end of a job tells whether others or its script ended it.
func (s *story) endings() {
	s.plays(s.Ends != nil)
	for name := range s.Ends {
		s.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t, s.Traits, s.open)
			begun := filepath.Join(s.Dir, "begun-"+rand.Text())
			script := "sleep 600"
			if s.Dir != "" { // otherwise it may end before its script begins, which is reported in another way
				script = "echo >'" + begun + "'\n" + script
			}
			ending, j := s.Ends[name], s.job(script)
			j.Time = ending.Time
			f := s.follow(Submit(s, s.client, j))
			f.reaches(job.Running)
			s.until(func() bool { return s.Dir == "" || exists(begun) })
			if ending.End != nil {
				ending.End(f.id)
			}
			end := f.wait()
			if ending.State == "" && !end.Lost || ending.State != "" && (end.State != ending.State || end.Lost) ||
				end.Code != 0 || end.Signal != ending.Signal || end.Held != "" ||
				!strings.Contains(end.Reason, ending.Reason) || strings.Contains(end.Reason, "\033") {
				s.Errorf("%+v, want %+v", end, ending)
			}
			if found := s.finds(f.id.Key()); found != "" {
				s.Errorf("%s is found", found)
			}
		})
	}
}

// A submission whose answer is lost makes exactly one job, whether the job still runs or has ended when the client
// looks for it.
func (s *story) lostAnswer() {
	s.plays(s.Lose != nil)
	lines, release := s.goes()
	for _, script := range []string{"echo once", "echo once\n" + lines} {
		client := s.Lose(true, 1)
		id, found, err := client.Submit(s.Context(), s.job(script))
		if err != nil || found {
			s.Fatalf("%v, found: %v", err, found)
		}
		release()
		s.completes(id, "once\n")
	}
}

// If the context ends before an answer, it is not known whether there is a job.
func (s *story) noAnswer() {
	s.plays(s.Lose != nil)
	client := s.Lose(false, 1000)
	mine := errors.New("enough")
	ctx, stop := context.WithCancelCause(s.Context())
	defer stop(nil)
	go func() {
		s.until(func() bool { return len(s.Told()) > 0 })
		stop(mine)
	}()
	j := s.job("true")
	id, _, err := client.Submit(ctx, j)
	doubt, ok := errors.AsType[*job.Unanswered](err)
	if !ok || !errors.Is(err, mine) || id != "" || doubt.Key != j.Key || doubt.Remedy == "" {
		s.Errorf("%q, %v", id, err)
	}
	if found := s.finds(j.Key); found != "" {
		s.Errorf("found %s", found)
	}
}

// A scheduler that does not answer for a while costs only time, and the user is told once.
func (s *story) silence() {
	s.plays(s.Silence != nil)
	lines, release := s.goes()
	others, releaseOther := s.goes()
	ran := filepath.Join(s.Dir, "ran")
	f := s.follow(Submit(s, s.client, s.job(lines+"echo >"+ran)))
	f.reaches(job.Running)
	s.Silence(true)
	j := s.job("echo once\n" + others)
	made := make(chan job.ID, 2)
	for range cap(made) {
		go func() {
			id, _, err := s.client.Submit(s.Context(), j)
			if err != nil {
				s.Error(err)
			}
			made <- id
		}()
	}
	s.until(func() bool { return len(s.Told()) > 0 })
	ctx, stop := context.WithTimeout(s.Context(), time.Second)
	defer stop()
	if err := s.client.Cancel(ctx, s.Never); !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("nobody can be asked, but: %v", err)
	}
	release()
	s.until(func() bool { _, err := os.Stat(ran); return err == nil })
	select {
	case <-f.done:
		s.Errorf("a job ended while nobody could be asked: %+v", f.end)
	case id := <-made:
		s.Errorf("job %s was submitted to nobody", id)
	default:
	}
	s.Silence(false)
	if end := f.wait(); end.State != job.Completed {
		s.Errorf("%+v", end)
	}
	id, other := <-made, <-made
	if releaseOther(); id != other {
		s.Errorf("two jobs: %s, %s", id, other)
	}
	s.completes(id, "once\n")
	if said := s.Told(); len(said) != 1 || !strings.Contains(said[0], "does not answer") {
		s.Errorf("told %q", said)
	}
}

// Fifty jobs need no more polls than one job.
func (s *story) many() {
	s.plays(s.Count != nil && s.Hold != nil)
	const jobs = 50
	s.Hold(true)
	follows := make([]*following, jobs)
	var all sync.WaitGroup
	for i := range follows {
		all.Go(func() {
			id, _, err := s.client.Submit(s.Context(), s.job("echo once; exit 7"))
			if err != nil {
				s.Error(err)
			}
			follows[i] = s.follow(id)
		})
	}
	if all.Wait(); s.Failed() {
		return
	}
	for _, f := range follows {
		f.reaches(job.Pending)
	}
	if s.Every > 0 {
		begun, before := time.Now(), s.Count().Looks
		s.until(func() bool { return s.Count().Looks >= before+20 })
		if n, took := s.Count().Looks-before, time.Since(begun); n > int(took/s.Every)+2 {
			s.Errorf("%d looks in %s", n, took)
		}
	}
	s.Hold(false)
	for _, f := range follows {
		if end := f.wait(); end.Code != 7 {
			s.Errorf("%+v", end)
		}
		if text := Printed(s, s.client, f.id); text != "once\n" {
			s.Errorf("the job has printed %q", text)
		}
	}
	if n := s.Count(); n.Submits != jobs || n.Details > jobs {
		s.Errorf("%d jobs: %+v", jobs, n)
	}
}

// A job that needs more than any machine has is refused, or given up after a while, with a reason.
func (s *story) impossible() {
	s.plays(s.Impossible != nil)
	j := s.job("true")
	s.Impossible(&j)
	if s.Late {
		if end := Wait(s, s.client, Submit(s, s.client, j)); end.Held == "" || end.State != "CANCELLED" || end.Lost {
			s.Errorf("%+v", end)
		}
	} else {
		id, _, err := s.client.Submit(s.Context(), j)
		no, ok := errors.AsType[*job.Refused](err)
		if !ok || no.Words == "" || strings.Contains(no.Words, "\n") || no.Remedy == "" || id != "" {
			s.Errorf("%q, %v", id, err)
		}
	}
	if found := s.finds(j.Key); found != "" {
		s.Errorf("%s is left", found)
	}
	for _, key := range []string{"", "a b", strings.Repeat("a", job.MaxKey+1)} {
		if id, _, err := s.client.Submit(s.Context(), job.Job{Key: key, Name: "x", Script: "true"}); err == nil {
			s.Errorf("the key %q is taken: %s", key, id)
		}
	}
}

// Malformed IDs are refused.
func (s *story) noIDs() {
	for _, id := range []job.ID{"", "x", "x/a b", "/key"} {
		for what, err := range map[string]error{
			"cancel": s.client.Cancel(s.Context(), id),
			"log":    s.client.(job.Logger).Log(s.Context(), id, &strings.Builder{}),
			"wait":   func() error { _, err := s.client.Wait(s.Context(), id, nil); return err }(),
		} {
			if err == nil || !strings.Contains(err.Error(), "this is no ID of a job") {
				s.Errorf("%s of %q: %v", what, id, err)
			}
		}
	}
}
