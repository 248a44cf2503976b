package download

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// AskOptions are the settings of an Asker. The zero value uses http.DefaultClient, writes no lines and keeps no
// answers.
type AskOptions struct {
	Client   *http.Client
	Keep     string        // path of the file with answers for the next process; empty: no file
	Offline  bool          // use only kept answers
	Progress io.Writer     // gets a line when a host is slow or is given up; nil: no lines
	Limit    time.Duration // time limit of waiting for answers, from Begin on; 0: 60 s
	Patience time.Duration // time limit of one answer; 0: 10 s
	Quiet    time.Duration // waiting time before the first line; 0: 2 s
	Pause    time.Duration // before a question is repeated; 0: 500 ms
	Clock    func() time.Time
}

const (
	askLimit    = 60 * time.Second
	askPatience = 10 * time.Second
	askQuiet    = 2 * time.Second
	askPause    = 500 * time.Millisecond

	// PerHost is the largest number of simultaneous questions to a host.
	PerHost = 16

	// failuresInARow is the number of successive unanswered questions after which a host is given up.
	failuresInARow = 3
)

// Unverified is the error of an unanswered question. It says nothing about the file: no host was asked, or none
// answered.
type Unverified struct {
	Host string
	Err  error
}

func (e *Unverified) Error() string { return fmt.Sprintf("%s: unverified: %v", e.Host, e.Err) }

// Asker sends short questions to hosts while a plan waits. It limits the time: a host that does not answer is given
// up after its first failures, and all questions share one time limit. It is safe for concurrent use.
type Asker struct {
	o    AskOptions
	kept *kept

	mu    sync.Mutex
	hosts map[string]*host
	round *round
	lines lines
}

type host struct {
	name    string
	slots   chan struct{}
	silent  int // number of successive unanswered questions
	why     error
	givenUp context.Context // ends when the host is given up, with the reason as cause
	giveUp  context.CancelCauseFunc
}

// round is the set of questions for one plan.
type round struct {
	context.Context // ends when the time limit is reached
	end             context.CancelCauseFunc
	waiting         int // number of running questions
	since           time.Time
	spent           time.Duration
	timer           *time.Timer
}

// NewAsker returns an Asker with the given settings.
func NewAsker(o AskOptions) *Asker {
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Limit, o.Patience = cmp.Or(o.Limit, askLimit), cmp.Or(o.Patience, askPatience)
	o.Quiet, o.Pause = cmp.Or(o.Quiet, askQuiet), cmp.Or(o.Pause, askPause)
	a := &Asker{o: o, hosts: map[string]*host{}, kept: &kept{path: o.Keep, clock: o.Clock}}
	a.lines = lines{out: o.Progress, quiet: o.Quiet, waits: map[*wait]bool{}}
	a.round = newRound()
	return a
}

func newRound() *round {
	r := &round{}
	r.Context, r.end = context.WithCancelCause(context.Background())
	return r
}

// Begin starts the questions of another plan with the whole time limit.
func (a *Asker) Begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.round.waiting == 0 {
		a.round = newRound()
	}
}

// Save stores the answers for the next process.
func (a *Asker) Save() error { return a.kept.save() }

// Head requests the size and the version of a file. It returns *Refused if the server does not have the file,
// *Unverified if no server answered, or the cause of ctx.
func (a *Asker) Head(ctx context.Context, rawURL string) (Info, error) {
	o := Options{URL: rawURL, Client: a.o.Client, AllowLocal: true}
	g, err := newGetter(o)
	if err != nil {
		return Info{}, err
	}
	if g.local() {
		return Head(ctx, o)
	}
	if info, err, ok := a.kept.answer(rawURL, g.shown); ok {
		return info, err
	}
	var info Info
	err = a.Ask(ctx, g.parsed.Host, func(ctx context.Context) (bool, error) {
		var err error
		info, err = g.head(ctx)
		refused, ok := errors.AsType[*Refused](err)
		return err == nil || ok && refused.Status != 0, err // an untrusted certificate is no answer
	})
	if refused, ok := errors.AsType[*Refused](err); err == nil || ok {
		a.kept.keep(rawURL, info, refused)
	}
	return info, err
}

// Ask runs one question to a host when it is the question's turn. f reports whether the host answered, even with an
// error. The error of an answered question is returned unchanged; otherwise the error is *Unverified or the cause of
// ctx. After a temporary failure, the question is repeated once.
func (a *Asker) Ask(ctx context.Context, name string, f func(context.Context) (answered bool, err error)) error {
	if a.o.Offline {
		return &Unverified{name, errors.New("-offline forbids to ask")}
	}
	h, r, err := a.enter(name)
	if err != nil {
		return &Unverified{name, err}
	}
	defer a.leave(r)
	asked := a.lines.begin(name, "")
	defer a.lines.end(asked)
	select {
	case h.slots <- struct{}{}:
	case <-h.givenUp.Done():
		return &Unverified{name, context.Cause(h.givenUp)}
	case <-r.Done():
		return &Unverified{name, context.Cause(r)}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, end := range []context.Context{h.givenUp, r} {
		defer context.AfterFunc(end, func() { cancel(context.Cause(end)) })()
	}
	silent, err := a.attempts(within, h, f)
	if !silent { // else the slot stays occupied until the host answers: see heard
		<-h.slots
	}
	switch {
	case err == nil:
		asked.answered()
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case within.Err() != nil:
		return &Unverified{name, context.Cause(within)}
	case silent:
		return &Unverified{name, err}
	}
	asked.answered()
	return err
}

// attempts asks once, and again after a temporary failure. silent is true if there was no answer.
func (a *Asker) attempts(ctx context.Context, h *host, f func(context.Context) (bool, error)) (silent bool, err error) {
	for again := false; ; again = true {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		late := fmt.Errorf("no answer within %v", a.o.Patience)
		within, cancel := context.WithTimeoutCause(ctx, a.o.Patience, late)
		answered, err := f(within)
		timedOut := within.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case answered:
			a.heard(h)
			return false, err
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case timedOut:
			err = late
		}
		if passing, ok := errors.AsType[*transient](err); ok && !again && passing.after <= a.o.Pause && !timedOut {
			select {
			case <-ctx.Done():
			case <-time.After(a.o.Pause):
			}
			continue
		} else if ok {
			err = passing.err
		}
		a.silent(h, err)
		return true, err
	}
}

// enter returns the host of a question and counts the question. The error says why the host is not asked.
func (a *Asker) enter(name string) (*host, *round, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.hosts[name]
	if h == nil {
		h = &host{name: name, slots: make(chan struct{}, PerHost)}
		h.givenUp, h.giveUp = context.WithCancelCause(context.Background())
		a.hosts[name] = h
		if why := a.kept.dead(name); why != nil {
			h.why = why
			h.giveUp(why)
		}
	}
	if h.why != nil {
		return nil, nil, h.why
	}
	r := a.round
	if r.Err() != nil {
		return nil, nil, context.Cause(r)
	}
	if r.waiting++; r.waiting == 1 {
		r.since = a.o.Clock()
		r.timer = time.AfterFunc(a.o.Limit-r.spent, func() {
			r.end(fmt.Errorf("the limit of %v for all questions of a plan is used up", a.o.Limit))
		})
	}
	return h, r, nil
}

func (a *Asker) leave(r *round) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.waiting--; r.waiting == 0 {
		r.spent += a.o.Clock().Sub(r.since)
		r.timer.Stop()
	}
}

// heard records that a host answered. It frees the slots of unanswered questions. Until then no new question took
// them, so that a silent host gets no more questions than were already running.
func (a *Asker) heard(h *host) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for ; h.silent > 0; h.silent-- {
		<-h.slots
	}
}

// silent records that a host did not answer. After too many failures the host is not asked any more for some time.
func (a *Asker) silent(h *host, why error) {
	a.mu.Lock()
	h.silent++
	last := h.silent >= failuresInARow && h.why == nil
	if last {
		h.why = fmt.Errorf("the host does not answer (%w), and is not asked any more", why)
		h.giveUp(h.why)
	}
	a.mu.Unlock()
	if last {
		a.kept.keepDead(h.name, why)
		a.lines.tell(fmt.Sprintf("%s does not answer: %v. It is not asked any more.", h.name, why))
	}
}

// Watch writes a line from time to time while another operation waits for the host of a location, until end is
// called.
func (a *Asker) Watch(location, subject string) (end func()) {
	name := location[strings.LastIndex(location, "@")+1:]
	if u, err := url.Parse(location); err == nil && u.Host != "" {
		name = u.Host
	}
	w := a.lines.begin(name, subject)
	return sync.OnceFunc(func() { a.lines.end(w) })
}
