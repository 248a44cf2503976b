// Package jobtest holds the suite that each scheduler of jobs must pass. Its jobs are scripts of a POSIX shell, with
// base64 and mktemp.
package jobtest

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// Traits are differences between schedulers that follow from how they work. The suite allows for them.
type Traits struct {
	// prefixes of variables that jobs have in addition to their own
	Adds []string
	// A container reports only an exit status: 137 means signal 9, whether the script or the kernel chose it.
	Container bool
	// The log of a job is text: invalid bytes are replaced.
	Text bool
	// Log follows a running job. Otherwise Log writes what the job has printed so far.
	Follows bool
	// The cluster may get new machines: a job that no machine can run is accepted, waits a while and is then given
	// up.
	Late bool
	// Cancel, and a new job of the same key, delete the job. Its end is then no longer known.
	Deletes bool
	// The time between two polls of all jobs, shared by all waits. 0: each wait is its own request, answered at the
	// end.
	Every time.Duration
}

// Site is a scheduler with idle machines, for one story. A story is skipped if it needs a hook that is nil: faults of
// a cloud cannot be simulated.
type Site struct {
	Client func() job.Scheduler // makes a client that knows nothing of the others
	Never  job.ID               // of a job that never existed
	Dir    string               // directory that jobs see at the same path

	Told    func() []string           // messages to the users of clients
	Hold    func(held bool)           // keeps queued jobs in the queue, or lets them start
	Silence func(silent bool)         // stops the scheduler's answers, or lets them through
	Seen    func() string             // everything about jobs that others can read, except their output
	Kept    func(key string) []string // what is left of a job beside the queue
	Count   func() Count              // number of clients' requests
	// Lose returns a client whose first submissions get no answer; made says whether their jobs are created.
	Lose       func(made bool, times int) job.Scheduler
	Impossible func(*job.Job)    // changes a job to need more than any machine has
	Ends       map[string]Ending // ways in which others end a job
}

// Count counts the clients' requests.
type Count struct {
	Looks   int // polls of all jobs
	Submits int
	Details int // requests about one ended job
}

// Ending is one way in which a long job is ended by others.
type Ending struct {
	Time   time.Duration   // time limit of the job
	End    func(id job.ID) // ends the running job; nil: the time limit ends it
	State  job.State       // "": the job is lost
	Signal int             // that ended the script, if the scheduler reports it
	Reason string          // text that the reason contains
}

// story is one story of the suite.
type story struct {
	Traits
	Site
	*testing.T
	open   func(t *testing.T) Site
	client job.Scheduler
}

func newStory(t *testing.T, traits Traits, open func(t *testing.T) Site) *story {
	site := open(t)
	return &story{traits, site, t, open, site.Client()}
}

// Run runs the suite on sites that open returns.
func Run(t *testing.T, traits Traits, open func(t *testing.T) Site) {
	for name, tell := range map[string]func(*story){
		"ends": (*story).ends, "log": (*story).log, "log of a job that runs": (*story).runningLog,
		"request": (*story).request, "request of a queued job": (*story).queuedRequest,
		"one key is one job": (*story).oneKey, "another client": (*story).anotherClient,
		"the end of a context": (*story).contexts, "cancel": (*story).cancel,
		"cancel what is stubborn": (*story).stubborn, "ended by others": (*story).endings,
		"a lost answer": (*story).lostAnswer, "no answer": (*story).noAnswer,
		"silence": (*story).silence, "many": (*story).many, "impossible": (*story).impossible,
		"what is left": (*story).left, "no IDs": (*story).noIDs,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(newStory(t, traits, open))
		})
	}
}

// plays skips a story if the site lacks the hooks that it needs.
func (s *story) plays(hooks bool) {
	if !hooks {
		s.Skip("nobody can play that to this scheduler")
	}
}

// Submit submits a job with a new key.
func Submit(t testing.TB, c job.Queue, j job.Job) job.ID {
	t.Helper()
	id, found, err := c.Submit(t.Context(), j)
	if err != nil || found || id.Key() != j.Key || id.Name() == "" {
		t.Fatalf("%s: %s, %v, found: %v", j.Name, id, err, found)
	}
	return id
}

// Wait waits for the end of a job.
func Wait(t testing.TB, c job.Scheduler, id job.ID) job.End {
	t.Helper()
	end, err := c.Wait(t.Context(), id, func(st job.Status) { t.Logf("job %s: %+v", id, st) })
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return end
}

// Reach waits until a job reaches a state.
func Reach(t testing.TB, c job.Scheduler, id job.ID, state job.State) job.Status {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	return follow(ctx, t, c, id).reaches(state)
}

// Printed returns the output of a job.
func Printed(t testing.TB, c job.Scheduler, id job.ID) string {
	t.Helper()
	var text strings.Builder
	if err := c.(job.Logger).Log(t.Context(), id, &text); err != nil {
		t.Errorf("%s: %v", id, err)
	}
	return text.String()
}

// job returns a job with a unique key, and a name that looks like a scheduler's output.
func (s *story) job(script string) job.Job {
	key := "a.B_c:d-" + rand.Text()
	return job.Job{Key: key, Name: "trial[\"" + key[:9] + "\"] JobState=FAILED\n", Script: script,
		Request: []byte("request of " + key), Environ: []string{"PATH=/usr/bin:/bin"}}
}

// completes waits for a job that must succeed, and returns its output. It checks the output unless prints is "".
func (s *story) completes(id job.ID, prints string) string {
	s.Helper()
	end, text := Wait(s, s.client, id), Printed(s, s.client, id)
	if end.State != job.Completed || end.Lost || end.Held != "" || prints != "" && text != prints {
		s.Errorf("%+v; it has printed %q", end, printable.Clip(text, 200))
	}
	return text
}

func (s *story) cancels(id job.ID) {
	s.Helper()
	if err := s.client.Cancel(s.Context(), id); err != nil {
		s.Errorf("%s: %v", id, err)
	}
}

// finds returns the job of a key; "" if there is none.
func (s *story) finds(key string) job.ID {
	s.Helper()
	id, found, err := s.Client().Find(s.Context(), key)
	switch {
	case err != nil || found && id.Key() != key:
		s.Fatalf("%s: %s, %v", key, id, err)
	case !found:
		return ""
	}
	return id
}

// following is a Wait in the background.
type following struct {
	testing.TB
	id     job.ID
	states chan job.Status
	done   chan struct{}
	end    job.End
	err    error
}

func follow(ctx context.Context, t testing.TB, c job.Scheduler, id job.ID) *following {
	f := &following{TB: t, id: id, states: make(chan job.Status, 1000), done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.end, f.err = c.Wait(ctx, id, func(st job.Status) { f.states <- st })
	}()
	return f
}

func (s *story) follow(id job.ID) *following { return follow(s.Context(), s, s.client, id) }

// reaches waits until a state is reported.
func (f *following) reaches(state job.State) job.Status {
	f.Helper()
	for {
		select {
		case st := <-f.states:
			if st.State == state {
				return st
			}
		case <-f.done:
			f.Fatalf("%s did not become %s: %+v, %v", f.id, state, f.end, f.err)
		}
	}
}

func (f *following) wait() job.End {
	f.Helper()
	<-f.done
	if f.err != nil {
		f.Fatalf("%s: %v", f.id, f.err)
	}
	return f.end
}

// goes returns lines of a script that wait for a file, and a function that makes the file.
func (s *story) goes() (lines string, release func()) {
	s.Helper()
	path := filepath.Join(s.Dir, "go-"+rand.Text())
	return "while [ ! -e '" + path + "' ]; do sleep 0.05; done\n", func() {
		s.Helper()
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			s.Fatal(err)
		}
	}
}

// until waits for a condition.
func (s *story) until(is func() bool) {
	s.Helper()
	for !is() {
		select {
		case <-s.Context().Done():
			s.Fatal(s.Context().Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
