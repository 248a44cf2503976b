package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
)

// attempt is one try at a step.
type attempt struct {
	cache.Attempt
	lease   *device.Lease
	content cache.Key
	inputs  []cache.Meta
	ends    []End
	entry   cache.Entry // of a success
	err     error       // of a failure
}

// launch starts the next attempt at a step.
func (r *run) launch(s *Step, lease *device.Lease) {
	r.running++
	n := s.Node
	a := &attempt{lease: lease, content: r.content(n)}
	r.tries[n.id]++
	a.Number = r.tries[n.id]
	a.Run, a.Address, a.Key, a.Start = r.RunID, n.Address, s.Key, time.Now()
	a.ID = fmt.Sprintf("%s-%s-%d", a.Start.UTC().Format("20060102T150405.000000"), s.Key.Short(), n.id)
	for _, dep := range n.Needs {
		a.inputs = append(a.inputs, r.ends[dep.id].meta)
	}
	for _, dep := range n.After {
		a.ends = append(a.ends, r.told(dep))
	}
	for _, d := range lease.GPUs {
		a.Devices = append(a.Devices, d.UUID)
	}
	reason := s.Reason
	if a.Number > 1 {
		reason = fmt.Sprintf("attempt %d", a.Number)
	}
	r.emit(Event{Type: NodeStart, Address: n.Address, Key: s.Key, Attempt: a.Number, Reason: reason, Log: r.logPath(a.ID)})
	if len(a.Devices) > 0 || len(lease.Ports) > 0 {
		r.emit(Event{Type: LeaseGranted, Address: n.Address, Attempt: a.Number, Data: map[string]any{"devices": a.Devices, "ports": lease.Ports, "cpus": lease.CPUs}})
	}
	go func() {
		a.entry, a.err = r.try(s, a)
		a.Duration = time.Since(a.Start)
		r.messages <- message{step: s, attempt: a}
	}()
}

// try runs the task once and stores what it made.
func (r *run) try(s *Step, a *attempt) (entry cache.Entry, err error) {
	n := s.Node
	out, err := r.Scratch()
	if err != nil {
		return entry, fmt.Errorf("%s: scratch directory: %w", n.Address, err)
	}
	defer os.RemoveAll(out)
	work, err := r.Scratch()
	if err != nil {
		return entry, fmt.Errorf("%s: scratch directory: %w", n.Address, err)
	}
	defer os.RemoveAll(work)
	log, err := r.openLog(a.ID)
	if err != nil {
		return entry, fmt.Errorf("%s: log: %w", n.Address, err)
	}
	defer log.Close()
	env := &Env{Out: out, Work: work, Log: log, Lease: a.lease, Emit: r.relay(s, a.Number)}
	for i, dep := range n.Needs {
		entry, err := r.inputs.get(r.ctx, a.inputs[i].Key)
		if err != nil {
			return entry, fmt.Errorf("input %s: %w", dep.Address, err)
		}
		env.Inputs = append(env.Inputs, Input{Address: dep.Address, Entry: entry})
	}
	env.Ends = a.ends
	for i := range env.Ends {
		if key := env.Ends[i].Entry.Key; !key.IsZero() {
			if env.Ends[i].Entry, err = r.inputs.get(r.ctx, key); err != nil {
				return entry, fmt.Errorf("%s: %w", env.Ends[i].Address, err)
			}
		}
	}
	if err := n.Task.Run(r.ctx, env); err != nil {
		fmt.Fprintf(log, "\n%s: %v\n", n.Address, err)
		return entry, err
	}
	if r.ctx.Err() != nil {
		return entry, context.Cause(r.ctx)
	}
	return r.Store.Put(r.ctx, out, cache.Meta{
		Key: s.Key, Content: a.content, Address: n.Address, Text: s.Text,
		Created: time.Now(), Duration: time.Since(a.Start), Log: a.ID,
	})
}

// relay passes on what a task tells of its attempt.
func (r *run) relay(s *Step, number int) func(Event) {
	return func(e Event) {
		e.Address, e.Key, e.Attempt = s.Node.Address, s.Key, number
		r.messages <- message{event: &e}
	}
}

// conclude draws the consequences of an attempt.
func (r *run) conclude(s *Step, a *attempt) {
	log := r.logPath(a.ID)
	if a.err == nil {
		r.record(a)
		r.result.Done++
		r.emit(Event{Type: NodeDone, Address: s.Node.Address, Key: s.Key, Attempt: a.Number, Duration: a.Duration, Log: log})
		r.settleAll(r.finish(s, end{known: true, state: present, text: string(NodeDone), meta: a.entry.Meta, key: s.Key}))
		return
	}
	if r.ctx.Err() != nil {
		r.emit(Event{Type: NodeFailed, Address: s.Node.Address, Key: s.Key, Attempt: a.Number, Duration: a.Duration, Reason: "interrupted", Log: log,
			Failure: &cache.Failure{Class: cache.Transient, Message: "interrupted"}})
		return
	}
	failure := asFailure(a.err)
	retry := DefaultRetry(failure.Class)
	if failure.Retry != nil {
		retry = *failure.Retry
	}
	a.Failure = &failure.Failure
	r.record(a)
	again := a.Number < retry.Attempts && failure.Class.Retried() && !r.stopping()
	event := Event{Type: NodeFailed, Address: s.Node.Address, Key: s.Key, Attempt: a.Number, Duration: a.Duration, Failure: a.Failure, Log: log, Retrying: again}
	if again {
		pause := retry.Backoff << (a.Number - 1)
		event.Reason = "tried again in " + pause.String()
		r.emit(event)
		r.pause(pause, message{step: s, wake: true, retry: true})
		return
	}
	r.emit(event)
	r.failed = true
	r.result.Failed++
	r.result.Failures = append(r.result.Failures, Failed{s.Node.Address, *a.Failure, log})
	r.settleAll(r.finish(s, end{known: true, state: failed, text: endOfFailure(a.Failure), failure: a.Failure, key: s.Key}))
}

// record writes the attempt into the journal. A journal that cannot be written ends the apply: what it would forget is
// GPU time.
func (r *run) record(a *attempt) {
	if err := r.Journal.Record(a.Attempt); err != nil && r.fatal == nil {
		r.fatal = fmt.Errorf("journal: %w", err)
	}
}

// asFailure gives every error a class. An error of no class is this machine's or our own fault: infra.
func asFailure(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return &Failure{Failure: cache.Failure{Class: cache.Infra, Message: err.Error()}, Err: err}
}

func (r *run) logPath(id string) string { return filepath.Join(r.LogDir, id+".log") }

func (r *run) openLog(id string) (*syncedLog, error) {
	if err := os.MkdirAll(r.LogDir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(r.logPath(id), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return &syncedLog{f: f}, nil
}

// syncedLog lets several streams of one attempt share its log.
type syncedLog struct {
	mu sync.Mutex
	f  *os.File
}

var _ io.WriteCloser = (*syncedLog)(nil)

func (l *syncedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Write(p)
}

func (l *syncedLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.f.Sync(), l.f.Close())
}

// verifiedInputs reads each entry that tasks use once, checking every byte.
type verifiedInputs struct {
	store cache.Store
	mu    sync.Mutex
	seen  map[cache.Key]func() (cache.Entry, error)
}

func (v *verifiedInputs) get(ctx context.Context, key cache.Key) (cache.Entry, error) {
	v.mu.Lock()
	read, ok := v.seen[key]
	if !ok {
		read = sync.OnceValues(func() (cache.Entry, error) { return v.store.Get(ctx, key, true) })
		if v.seen == nil {
			v.seen = map[cache.Key]func() (cache.Entry, error){}
		}
		v.seen[key] = read
	}
	v.mu.Unlock()
	return read()
}
