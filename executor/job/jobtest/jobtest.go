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
)

// Traits are what a scheduler does in another way, by its nature. The suite asks for it in that way.
type Traits struct {
	// beginnings of the names of variables that jobs have beside those that they were given
	Adds []string
	// A container ends with a number alone: 137 stands for signal 9, whether the script or the kernel chose it.
	Container bool
	// What a job prints arrives as text: bytes that are none arrive as marks.
	Text bool
	// Log follows a job that runs. Without that, Log writes what the job has printed up to now.
	Follows bool
	// A cluster may get other machines: a job that none can take is no error, and waits a while before it is given up.
	Late bool
	// A job is an object that Cancel, and another job of its key, delete. Its end is not known any more.
	Deletes bool
	// The time between two looks at all jobs, which all waits share. 0: each wait is a question of its own, which is
	// answered at the end.
	Every time.Duration
}

// Site is a scheduler with machines that are idle, for one story. A story is skipped where it needs a hook that is nil:
// nobody plays a fault to a cloud itself.
type Site struct {
	Client func() job.Scheduler // makes a client, which knows nothing of the others
	Never  job.ID               // of a job that never was
	Dir    string               // files that jobs find under the same path

	Told    func() []string           // what the users of clients were told
	Hold    func(held bool)           // whether jobs that are queued stay so
	Silence func(silent bool)         // whether the scheduler answers nobody
	Seen    func() string             // all that others can read of jobs, but for what jobs print
	Kept    func(key string) []string // what is left of a job beside the queue
	Count   func() Count              // what clients did
	// Lose returns a client whose first submissions get no answer; made says whether their jobs are made.
	Lose       func(made bool, times int) job.Scheduler
	Impossible func(*job.Job)    // has a job ask for what no machine has
	Ends       map[string]Ending // by others
}

// Count is how often clients asked.
type Count struct {
	Looks   int // at the jobs
	Submits int
	Details int // about one job that has ended
}

// Ending is one way in which a job ends that would run for long.
type Ending struct {
	Time   time.Duration   // that the job asks for
	End    func(id job.ID) // of a job that runs; nil: it ends by its time
	State  job.State       // "": the job is lost
	Signal int             // by which the script ended, where the scheduler says so
	Reason string          // words that the reason has
}

// story is one that the suite tells.
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

// Run runs the suite on sites that open makes.
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

// plays skips a story where the site lacks a hook for it.
func (s *story) plays(hooks bool) {
	if !hooks {
		s.Skip("nobody can play that to this scheduler")
	}
}

// Submit submits a job of whose key there is none.
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

// Reach waits until a job has a state.
func Reach(t testing.TB, c job.Scheduler, id job.ID, state job.State) job.Status {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	return follow(ctx, t, c, id).reaches(state)
}

// Printed is what a job has printed.
func Printed(t testing.TB, c job.Scheduler, id job.ID) string {
	t.Helper()
	var text strings.Builder
	if err := c.(job.Logger).Log(t.Context(), id, &text); err != nil {
		t.Errorf("%s: %v", id, err)
	}
	return text.String()
}

// job is a job with a key that no other has, and a name that could be taken for other words of a scheduler.
func (s *story) job(script string) job.Job {
	key := "a.B_c:d-" + rand.Text()
	return job.Job{Key: key, Name: "trial[\"" + key[:9] + "\"] JobState=FAILED\n", Script: script,
		Request: []byte("request of " + key), Environ: []string{"PATH=/usr/bin:/bin"}}
}

// completes waits for a job that has nothing to fail by, and returns what it printed; "": anything.
func (s *story) completes(id job.ID, prints string) string {
	s.Helper()
	end, text := Wait(s, s.client, id), Printed(s, s.client, id)
	if end.State != job.Completed || end.Lost || end.Held != "" || prints != "" && text != prints {
		s.Errorf("%+v; it has printed %q", end, job.Short(text, 200))
	}
	return text
}

func (s *story) cancels(id job.ID) {
	s.Helper()
	if err := s.client.Cancel(s.Context(), id); err != nil {
		s.Errorf("%s: %v", id, err)
	}
}

// finds looks for a job of a key; "": there is none.
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

// following is a Wait that goes on beside the test.
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

// reaches waits until a state is told.
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

// goes are lines of a script that wait for a file, and the function that makes it.
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
