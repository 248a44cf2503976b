package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// attempt is one try at a step.
type attempt struct {
	journal.Attempt
	lease    *device.Lease
	estimate time.Duration // of the duration; 0: unknown
	ran      time.Duration // time on another machine
	content  cache.Key
	inputs   []*cache.Meta
	ends     []End
	leave    []func()    // of the gates that the step has passed
	entry    cache.Entry // of a success
	err      error       // of a failure
}

// newAttempt returns the next attempt at a step, which begins now.
func (r *run) newAttempt(s *Step) *attempt {
	id := s.Node.id
	r.jobs[id].tries++
	a := &attempt{}
	a.Run, a.Address, a.Key, a.Start, a.Number = r.RunID, s.Node.Address, s.Key, time.Now(), r.jobs[id].tries
	a.ID = fmt.Sprintf("%s-%s-%d.%d", a.Start.UTC().Format("20060102T150405.000000"), s.Key.Short(), id, a.Number)
	a.Hardware = s.Node.Hardware
	if s.found.entry != nil {
		a.Replaces = s.found.entry.Log
	}
	return a
}

// launch starts the next attempt at a step, which has passed all gates.
func (r *run) launch(s *Step, lease *device.Lease, leave []func()) {
	n := s.Node
	a := r.newAttempt(s)
	a.leave, a.lease, a.estimate, a.content = leave, lease, s.Estimate, r.contentKey(n)
	r.active = append(r.active, a)
	for _, dep := range n.Needs {
		a.inputs = append(a.inputs, r.steps[dep.id].found.entry)
	}
	for _, dep := range n.After {
		a.ends = append(a.ends, r.endFor(dep))
	}
	lease.Name(n.Address)
	for _, d := range lease.GPUs {
		a.Devices = append(a.Devices, d.UUID)
	}
	reason := s.Reason
	if a.Number > 1 {
		reason = fmt.Sprintf("attempt %d", a.Number)
	}
	r.emit(Event{
		Type: NodeStart, Address: n.Address, Key: s.Key, Attempt: a.Number, Reason: reason, Log: r.logPath(a.ID),
		Duration: a.Start.Sub(r.jobs[n.id].ready),
	})
	if len(a.Devices) > 0 || len(lease.Ports) > 0 {
		r.emit(Event{Type: LeaseGranted, Address: n.Address, Attempt: a.Number,
			Data: map[string]any{"devices": append([]string{}, a.Devices...), "ports": append([]int{}, lease.Ports...),
				"cpus": lease.CPUs}})
	}
	r.quiet = lease.Quiet
	work := func() {
		a.err = errGone
		defer func() {
			if a.Duration = a.took(s.Node); s.Node.Remote != nil {
				a.Queued = max(0, time.Since(a.Start)-a.ran)
			}
			r.send(func() { r.end(s, a) })
		}()
		a.entry, a.err = r.try(s, a)
	}
	select {
	case r.signals.workers <- work:
	default:
		go r.hand(work)
	}
}

// hand runs one attempt after the other. A new goroutine begins with a small stack, which would be copied many times
// before it is large enough for an attempt.
func (r *run) hand(work func()) {
	for {
		work()
		select {
		case work = <-r.signals.workers:
		case <-r.signals.over:
			return
		}
	}
}

// errGone is the failure of a task that ended its goroutine instead of returning.
var errGone = errors.New("the task did not return")

// try runs the task once and stores its result. Result and log are durable when try returns.
func (r *run) try(s *Step, a *attempt) (entry cache.Entry, err error) {
	log, err := r.openLog(a.ID)
	if err != nil {
		return entry, fmt.Errorf("log: %w", err)
	}
	defer log.Close()
	defer func() {
		if err != nil { // otherwise the store has synced the log
			if f := r.asFailure(err); f.Rule == DiskFull || f.Rule == DiskExceeded {
				log.Shorten()
			}
			fmt.Fprintf(log, "\n%s: %v\n", s.Node.Address, err)
			_ = log.File().Sync()
		}
	}()
	dir, err := r.Scratch()
	if err != nil {
		return entry, err
	}
	relay := r.relay(s, a.Number)
	defer func() {
		if err != nil { // otherwise the store has moved it
			remove(dir, relay)
		}
	}()
	env := &Env{Out: filepath.Join(dir, cache.FilesDir), Scratch: dir, Log: log, Lease: a.lease, Emit: relay,
		Run: r.RunID, Key: s.Key, Estimate: a.estimate, Replaces: s.found.entry}
	if err := os.Mkdir(env.Out, 0o755); err != nil {
		return entry, err
	}
	if env.Work, err = r.Scratch(); err != nil {
		return entry, err
	}
	if err = r.perform(s, a, env); err == nil {
		err = r.recheck(s.Node, a)
	}
	ran := env.transcript()
	if err != nil && ran != "" { // otherwise the store keeps it
		_ = os.WriteFile(TranscriptOf(r.logPath(a.ID)), []byte(ran+"\n"), 0o644)
	}
	// Some file systems wait for the disk after each removed file. The result is stored meanwhile.
	var removal sync.WaitGroup
	removal.Go(func() { remove(env.Work, relay) })
	defer removal.Wait()
	if err != nil {
		return entry, err
	}
	if s.renews() || s.redo == follow || s.found.gone != "" {
		if err := r.makeWay(s); err != nil {
			return entry, err
		}
	}
	meta := cache.Meta{
		Key: s.Key, Content: a.content, Address: s.Node.Address, Text: s.Text, Transcript: ran,
		Created: time.Now(), Duration: a.took(s.Node), Log: a.ID}
	return r.Store.Put(r.ctx, cache.Draft{Meta: meta, Dir: dir, Log: log.File(), Waits: func() {
		a.lease.Yield()
		r.send(func() {
			r.set(s, storing)
			r.forget(a)
		})
	}})
}

// took returns how long the node has run so far, without the time in the queue of another machine.
func (a *attempt) took(n *Node) time.Duration {
	if n.Remote != nil {
		return a.ran
	}
	return time.Since(a.Start)
}

// perform runs the task.
func (r *run) perform(s *Step, a *attempt, env *Env) error {
	err := r.supply(env, s.Node, a)
	if err == nil {
		err = r.protect(s.Node, a, env)
	}
	return cmp.Or(err, context.Cause(r.ctx))
}

// remover is a store that can remove an entry. Other stores keep an entry whose node runs again.
type remover interface{ Remove(cache.Key) error }

// archive is a store that can keep an entry beside its replacement.
type archive interface {
	Supersede(context.Context, cache.Key) error
}

// makeWay removes the entry that a new result replaces. That entry has the planned key, even if the key has changed
// since.
func (r *run) makeWay(s *Step) error {
	planned := r.plan.Steps[s.Node.id].Key
	if keeper, ok := r.Store.(archive); ok && s.Node.History {
		return errors.Join(keeper.Supersede(r.ctx, s.Key), keeper.Supersede(r.ctx, planned))
	}
	if giver, ok := r.Store.(remover); ok {
		return errors.Join(giver.Remove(s.Key), giver.Remove(planned))
	}
	return nil
}

// protect runs a task. A panic fails only that task: other attempts may have been running for hours.
func (r *run) protect(n *Node, a *attempt, env *Env) (err error) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(env.Log, "\npanic: %v\n\n%s", p, debug.Stack())
			err = &Failure{Retry: &Retry{Attempts: 1}, Failure: failure.Failure{
				Class: failure.Infra, Rule: "panic", Stage: "run", Message: fmt.Sprintf("panic: %v", p),
				Remedy: "this is a defect of " + r.Terms.Program + ": report it with the log",
			}}
		}
	}()
	if n.Remote != nil {
		a.ran, err = n.Remote(r.ctx, env)
		a.Devices = env.Devices
		return err
	}
	return n.Task.Run(r.ctx, env)
}

// relay returns the function by which a task reports events.
func (r *run) relay(s *Step, number int) func(Event) {
	return func(e Event) {
		e.Address, e.Key, e.Attempt = s.Node.Address, s.Key, number
		r.send(func() { r.emit(e) })
	}
}

// remove removes a scratch directory. It reports files that cannot be removed, such as mount points; a later apply
// tries again.
func remove(dir string, tell func(Event)) {
	if err := fs.RemoveTree(dir); err != nil {
		tell(Event{Type: Note, Reason: "left behind: " + strings.ReplaceAll(err.Error(), "\n", "; ")})
	}
}
