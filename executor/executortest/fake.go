package executortest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/mask"
)

// FakeRun is what one run of a program in a Fake does.
type FakeRun struct {
	Stdout string
	Stderr string
	Status executor.Status // returned by Wait
	Takes  time.Duration   // how long the program runs after it has written its output
	Serves bool            // runs until it is stopped
	Err    error           // returned by Start
}

// Fake is an Executor that starts no programs: the first rule that matches a command says what happens. Time is that
// of package time, so a test can run in a synctest bubble. A Fake is safe for concurrent use.
type Fake struct {
	mu    sync.Mutex
	rules []fakeRule
	calls []executor.Command
}

type fakeRule struct {
	match string
	run   func(executor.Command) FakeRun
}

// NewFake returns a Fake without rules: every command is an unknown program.
func NewFake() *Fake { return &Fake{} }

// On adds a rule for commands whose arguments, joined by blanks, contain match. Earlier rules win. run may do the
// program's work: write files below cmd.Dir, or listen on a port.
func (f *Fake) On(match string, run func(cmd executor.Command) FakeRun) *Fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, fakeRule{match, run})
	return f
}

// Calls returns the started commands in order.
func (f *Fake) Calls() []executor.Command {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Start runs the rule of cmd.
func (f *Fake) Start(ctx context.Context, cmd executor.Command) (executor.Process, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	rule, err := f.find(cmd)
	if err != nil {
		return nil, err
	}
	run := rule.run(cmd)
	if run.Err != nil {
		return nil, run.Err
	}
	p := &playing{gone: make(chan struct{}), status: run.Status}
	p.run, p.end = context.WithCancelCause(ctx)
	go p.play(cmd, run)
	return p, nil
}

func (f *Fake) find(cmd executor.Command) (fakeRule, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, cmd)
	line := strings.Join(cmd.Argv, " ")
	for _, r := range f.rules {
		if strings.Contains(line, r.match) {
			return r, nil
		}
	}
	return fakeRule{}, &executor.StartError{Program: line, Reason: "the fake has no rule for it", Err: fs.ErrNotExist}
}

// playing is a run that has begun.
type playing struct {
	run    context.Context // the program ends with this context
	end    context.CancelCauseFunc
	gone   chan struct{} // closed: the program has ended
	status executor.Status
	cause  error // the cause of the context that stopped it
	err    error
}

var errStopped = errors.New("stopped")

func (p *playing) Done() <-chan struct{} { return p.gone }

func (p *playing) Wait(ctx context.Context) (executor.Status, error) {
	select {
	case <-p.gone:
	case <-ctx.Done():
		p.end(context.Cause(ctx))
		<-p.gone
	}
	return p.status, cmp.Or(p.cause, p.err)
}

func (p *playing) Stop() (executor.Status, error) {
	p.end(errStopped)
	<-p.gone
	return p.status, p.err
}

func (p *playing) play(cmd executor.Command, run FakeRun) {
	defer close(p.gone)
	defer p.end(nil)
	p.err = errors.Join(
		writeMasked(cmd.Stdout, run.Stdout, cmd.Secrets),
		writeMasked(cmd.Stderr, run.Stderr, cmd.Secrets),
	)
	var over <-chan time.Time
	if !run.Serves {
		over = time.After(run.Takes)
	}
	select {
	case <-over:
	case <-p.run.Done():
		p.status.Code, p.status.Signal = -1, "SIGTERM"
		if cause := context.Cause(p.run); cause != errStopped {
			p.cause = cause
		}
	}
}

func writeMasked(w io.Writer, text string, secrets []string) error {
	if w == nil || text == "" {
		return nil
	}
	m := mask.New(w, secrets)
	_, err := io.WriteString(m, text)
	return errors.Join(err, m.Close())
}
