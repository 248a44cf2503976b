package pipe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
)

// Options are the settings of a Program.
type Options struct {
	Program  string       // path, see Find
	Environ  []string     // environment, as NAME=value
	Settings any          // for the scheduler, as JSON
	Told     func(string) // called with messages for the user; may be nil
}

// Program is a scheduler in a separate program, which is started again when it ends. It is safe for concurrent use.
type Program struct {
	o        Options
	settings json.RawMessage

	mu  sync.Mutex
	now *process // running process; nil: none
}

// Find looks for a program in the directory beside and then in those of path.
func Find(name, beside, path string) (string, error) {
	if program, ok := job.Program(name, append([]string{beside}, filepath.SplitList(path)...)...); ok {
		return program, nil
	}
	return "", fmt.Errorf("the program %s is neither beside benchgraph, in %s, nor in PATH (%s); the archive of a "+
		"release has both", name, beside, path)
}

// Open starts the program, which opens the scheduler. It returns the scheduler's error if that fails.
func Open(ctx context.Context, o Options) (*Program, error) {
	settings, err := json.Marshal(o.Settings)
	if err != nil {
		return nil, err
	}
	if o.Told == nil {
		o.Told = func(string) {}
	}
	p := &Program{o: o, settings: settings}
	_, err = p.process(ctx)
	return p, err
}

// openTime limits how long a scheduler may take to open.
const openTime = time.Minute

// OpenNamed opens a program by its name, in the directory beside or one of path.
func OpenNamed(ctx context.Context, name, beside, path string, o Options) (p *Program, err error) {
	if o.Program, err = Find(name, beside, path); err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeoutCause(ctx, openTime, fmt.Errorf("no answer within %s", openTime))
	defer stop()
	return Open(ctx, o)
}

// Close ends the program. Its jobs continue.
func (p *Program) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil {
		return nil
	}
	p.now.end(lastWord)
	<-p.now.over
	p.now = nil
	return nil
}

// process returns the running process with an open scheduler. It starts a new one if the last has ended.
func (p *Program) process(ctx context.Context) (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now != nil && !p.now.ended() {
		return p.now, nil
	}
	next, err := start(p.o)
	if err != nil {
		return nil, err
	}
	if _, err := next.call(ctx, message{Call: callOpen, Protocol: protocol, Settings: p.settings}, nil); err != nil {
		next.end(lastWord)
		return nil, err
	}
	p.now = next
	return next, nil
}

// tries is the largest number of processes for one call.
const tries = 4

// call makes a call and returns its answer. If the process ends before it answers, call repeats the call with a new
// process: a second submission finds the job of the first.
func (p *Program) call(ctx context.Context, m message, each func(message)) (message, error) {
	for try := 1; ; try++ {
		to, err := p.process(ctx)
		if err == nil {
			var a message
			if a, err = to.call(ctx, m, each); err == nil {
				return a, nil
			}
		}
		if _, gone := errors.AsType[*goneError](err); !gone || try == tries {
			return message{}, err
		}
		select {
		case <-ctx.Done():
			return message{}, context.Cause(ctx)
		case <-time.After(time.Duration(try) * time.Second / 2):
		}
	}
}

// Submit submits a job unless there is one with the same key; then found is true.
func (p *Program) Submit(ctx context.Context, j job.Job) (id job.ID, found bool, err error) {
	a, err := p.call(ctx, message{Call: callSubmit, Job: &j}, nil)
	return a.ID, a.Found, err
}

// Find looks for a queued or running job with a key.
func (p *Program) Find(ctx context.Context, key string) (id job.ID, found bool, err error) {
	a, err := p.call(ctx, message{Call: callFind, Key: key}, nil)
	return a.ID, a.Found, err
}

// Cancel ends a job and returns when it has ended.
func (p *Program) Cancel(ctx context.Context, id job.ID) error {
	_, err := p.call(ctx, message{Call: callCancel, ID: id}, nil)
	return err
}

// Wait follows a job to its end. told is called when the job's status changes; it may be nil.
func (p *Program) Wait(ctx context.Context, id job.ID, told func(job.Status)) (job.End, error) {
	a, err := p.call(ctx, message{Call: callWait, ID: id}, func(m message) {
		if m.Status != nil && told != nil {
			told(*m.Status)
		}
	})
	if err != nil || a.End == nil {
		return job.End{}, err
	}
	return *a.End, nil
}

// Log writes the output of a job.
func (p *Program) Log(ctx context.Context, id job.ID, w io.Writer) error {
	var failed error
	had := int64(0) // bytes written so far, by all processes
	at := int64(0)  // bytes received from the current process
	_, err := p.call(ctx, message{Call: callLog, ID: id}, func(m message) {
		if m.Number == 0 { // a new process starts from the beginning
			at = 0
			return
		}
		text := m.Text[min(int64(len(m.Text)), max(0, had-at)):]
		at += int64(len(m.Text))
		had = max(had, at)
		if failed == nil && len(text) > 0 {
			_, failed = w.Write(text)
		}
	})
	return errors.Join(failed, err)
}

// goneError is the error for a process that ended before it answered.
type goneError struct {
	program string
	words   string // last line of its standard error
	err     error
}

func (e *goneError) Error() string {
	text := fmt.Sprintf("%s ended", filepath.Base(e.program))
	if e.err != nil {
		text += fmt.Sprintf(" (%v)", e.err)
	}
	return strings.TrimSuffix(text+": "+e.words, ": ")
}

func (e *goneError) Unwrap() error { return e.err }
