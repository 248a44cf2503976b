package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// attempt is one try at a step.
type attempt struct {
	cache.Attempt
	lease    *device.Lease
	estimate time.Duration // of how long it takes; 0: not known
	content  cache.Key
	inputs   []*cache.Meta
	ends     []End
	unclaim  func()      // lets other applies make the result
	waits    bool        // for the disk only
	entry    cache.Entry // of a success
	err      error       // of a failure
}

// newAttempt is the next attempt at a step, which begins now.
func (r *run) newAttempt(s *Step) *attempt {
	id := s.Node.id
	r.jobs[id].tries++
	a := &attempt{}
	a.Run, a.Address, a.Key, a.Start, a.Number = r.RunID, s.Node.Address, s.Key, time.Now(), r.jobs[id].tries
	a.ID = fmt.Sprintf("%s-%s-%d.%d", a.Start.UTC().Format("20060102T150405.000000"), s.Key.Short(), id, a.Number)
	return a
}

// launch starts the next attempt at a step, whose key this apply has claimed.
func (r *run) launch(s *Step, lease *device.Lease, unclaim func()) {
	r.running++
	n := s.Node
	a := r.newAttempt(s)
	a.unclaim, a.lease, a.estimate, a.content = unclaim, lease, s.Estimate, r.decider.contentKey(n)
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
	r.emit(Event{Type: NodeStart, Address: n.Address, Key: s.Key, Attempt: a.Number, Reason: reason, Duration: a.Start.Sub(r.jobs[n.id].ready), Log: r.logPath(a.ID)})
	if len(a.Devices) > 0 || len(lease.Ports) > 0 {
		r.emit(Event{Type: LeaseGranted, Address: n.Address, Attempt: a.Number, Data: map[string]any{"devices": a.Devices, "ports": lease.Ports, "cpus": lease.CPUs}})
	}
	r.quiet = lease.Quiet
	work := func() {
		a.err = errGone
		defer func() {
			a.Duration = time.Since(a.Start)
			r.send(message{step: s, attempt: a})
		}()
		a.entry, a.err = r.try(s, a)
	}
	select {
	case r.idle <- work:
	default:
		go r.hand(work)
	}
}

// hand works at one attempt after the other. The stack of a goroutine that begins is small, and is copied many times until
// it is as large as an attempt needs it.
func (r *run) hand(work func()) {
	for {
		work()
		select {
		case work = <-r.idle:
		case <-r.over:
			return
		}
	}
}

// errGone is the failure of a task that ended its goroutine instead of returning.
var errGone = errors.New("the task did not return")

// try runs the task once and stores what it made. Everything that tells of it is durable afterwards.
func (r *run) try(s *Step, a *attempt) (entry cache.Entry, err error) {
	log, err := r.openLog(a.ID)
	if err != nil {
		return entry, fmt.Errorf("log: %w", err)
	}
	defer log.close()
	defer func() {
		if err != nil { // else the store made the log durable
			fmt.Fprintf(log, "\n%s: %v\n", s.Node.Address, err)
			_ = log.f.Sync()
		}
	}()
	dir, err := r.Scratch()
	if err != nil {
		return entry, err
	}
	relay := r.relay(s, a.Number)
	defer func() {
		if err != nil { // else the store took it
			remove(dir, relay)
		}
	}()
	env := &Env{Out: filepath.Join(dir, cache.FilesDir), Scratch: dir, Log: log, Lease: a.lease, Emit: relay, Run: r.RunID, Key: s.Key}
	if err := os.Mkdir(env.Out, 0o755); err != nil {
		return entry, err
	}
	if env.Work, err = r.Scratch(); err != nil {
		return entry, err
	}
	if err = r.perform(s, a, env); err == nil {
		err = r.recheck(s.Node, a)
	}
	// Some file systems wait for the disk at each file that is removed: others run meanwhile.
	var removal sync.WaitGroup
	removal.Go(func() { remove(env.Work, relay) })
	defer removal.Wait()
	if err != nil {
		return entry, err
	}
	if s.redo == replace || s.redo == follow || s.found.gone != "" {
		if err := r.makeWay(s); err != nil {
			return entry, err
		}
	}
	meta := cache.Meta{
		Key: s.Key, Content: a.content, Address: s.Node.Address, Text: s.Text,
		Created: time.Now(), Duration: time.Since(a.Start), Log: a.ID,
	}
	return r.Store.Put(r.ctx, cache.Draft{Meta: meta, Dir: dir, Log: log.f, Waits: func() {
		a.waits = true
		a.lease.Yield()
		r.send(message{waits: a})
	}})
}

// perform runs the task.
func (r *run) perform(s *Step, a *attempt, env *Env) error {
	if err := r.supply(env, s.Node, a); err != nil {
		return err
	}
	if err := r.protect(s.Node.Task, env); err != nil {
		return err
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return nil
}

// remover is a store that can give an entry up. In one that cannot, the entry that is there stays when its node is run again.
type remover interface{ Remove(cache.Key) error }

// archive is a store that can keep an entry beside the one that takes its place.
type archive interface {
	Supersede(context.Context, cache.Key) error
}

// makeWay makes room for a result where there is one. What is replaced is found under the planned key, also when this one turned
// out to be another.
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

// supply gives the task the verified results of what it waited for.
func (r *run) supply(env *Env, n *Node, a *attempt) error {
	for i, dep := range n.Needs {
		entry, err := r.inputs.get(r.ctx, a.inputs[i])
		if err != nil {
			return missingInput(dep.Address, err)
		}
		env.Inputs = append(env.Inputs, Input{Address: dep.Address, Entry: entry})
	}
	env.Ends = a.ends
	for i := range env.Ends {
		e := &env.Ends[i]
		if !e.Entry.Key.IsZero() {
			entry, err := r.inputs.get(r.ctx, &e.Entry.Meta)
			if err != nil {
				return missingInput(e.Address, err)
			}
			e.Entry = entry
		}
	}
	return nil
}

// InputGone is the rule of a node whose input was damaged or removed since the plan. It does not come back by itself; the
// next plan finds that it is gone and makes it anew.
const InputGone = "input_gone"

// InputChanged is the rule of a node whose input was changed in the store while the node ran. The input is in quarantine.
const InputChanged = "input_changed"

// recheck makes sure that the inputs still are as they were checked. A program that reaches the store may have changed its own inputs, or
// those of later nodes.
func (r *run) recheck(n *Node, a *attempt) error {
	used := make([]End, len(n.Needs), len(n.Needs)+len(a.ends))
	for i, dep := range n.Needs {
		used[i].Address, used[i].Entry.Meta = dep.Address, *a.inputs[i]
	}
	for _, e := range append(used, a.ends...) {
		if e.Entry.Key.IsZero() {
			continue
		}
		if _, err := r.inputs.get(r.ctx, &e.Entry.Meta); err != nil && r.ctx.Err() == nil {
			return &Failure{Err: err, Retry: &Retry{Attempts: 1}, Failure: cache.Failure{
				Class: cache.Infra, Rule: InputChanged, Stage: "verify", Message: fmt.Sprintf("input %s was changed while %s ran: %v", e.Address, n.Address, err),
				Remedy: "the result does not count. Find the program that writes to the store; sandbox = \"required\" keeps programs from it",
			}}
		}
	}
	return nil
}

// missingInput is the failure of a node that cannot have its input.
func missingInput(address string, err error) error {
	return &Failure{Err: err, Retry: &Retry{Attempts: 1}, Failure: cache.Failure{
		Class: cache.Infra, Rule: InputGone, Stage: "start", Message: "input " + address + ": " + err.Error(),
		Remedy: "the next plan makes the input anew",
	}}
}

// protect runs a task. A panic is the failure of that task alone: what others have been at for hours is not lost by it.
func (r *run) protect(t Task, env *Env) (err error) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(env.Log, "\npanic: %v\n\n%s", p, debug.Stack())
			err = &Failure{Retry: &Retry{Attempts: 1}, Failure: cache.Failure{
				Class: cache.Infra, Rule: "panic", Stage: "run", Message: fmt.Sprintf("panic: %v", p),
				Remedy: "this is a defect of " + r.terms().Program + ": report it with the log",
			}}
		}
	}()
	return t.Run(r.ctx, env)
}

// relay passes on what a task tells of its attempt.
func (r *run) relay(s *Step, number int) func(Event) {
	return func(e Event) {
		e.Address, e.Key, e.Attempt = s.Node.Address, s.Key, number
		r.send(message{event: &e})
	}
}

// Interrupted is the reason of a NodeFailed whose attempt was ended from outside, which says nothing about the node.
const Interrupted = "interrupted"

// conclude draws the consequences of an attempt.
func (r *run) conclude(s *Step, a *attempt) {
	log := r.logPath(a.ID)
	if a.err == nil {
		r.record(a)
		r.result.Done++
		r.emit(Event{Type: NodeDone, Address: s.Node.Address, Key: s.Key, Attempt: a.Number, Duration: a.Duration, Log: log})
		s.state, s.found.entry = present, &a.entry.Meta
		r.settleAll(r.finish(s))
		return
	}
	if r.ctx.Err() != nil {
		r.emit(Event{Type: NodeFailed, Address: s.Node.Address, Key: s.Key, Attempt: a.Number, Duration: a.Duration, Reason: Interrupted, Log: log,
			Failure: &cache.Failure{Class: cache.Transient, Message: Interrupted}})
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
	event := Event{Type: NodeFailed, Address: s.Node.Address, Key: s.Key, Attempt: a.Number, Duration: a.Duration, Failure: a.Failure, Log: log, Retrying: again}
	if again {
		pause := retry.Backoff << min(a.Number-1, maxDoublings)
		event.Reason = "tried again in " + pause.String()
		r.emit(event)
		r.sleep(s, pause)
		return
	}
	r.emit(event)
	r.failed = true
	r.result.Failed++
	r.result.Failures = append(r.result.Failures, Failed{s.Node.Address, *a.Failure, log})
	s.state, s.Failure, s.found.entry = afterFailure(a.Failure), &a.Attempt, nil
	r.settleAll(r.finish(s))
}

// maxDoublings keeps the pause between many attempts from growing without end.
const maxDoublings = 10

// record writes the attempt into the journal. A journal that cannot be written ends the apply: what it would forget is
// GPU time.
func (r *run) record(a *attempt) {
	if err := r.Journal.Record(a.Attempt); err != nil && r.fatal == nil {
		r.fatal = fmt.Errorf("journal: %w", err)
	}
}

// kept is an attempt's failure as the journal keeps it, since that is how the next plan will see it.
func (r *run) kept(a *attempt) *cache.Failure {
	for _, past := range slices.Backward(r.Journal.Attempts(a.Address)) {
		if past.ID == a.ID {
			return past.Failure
		}
	}
	return a.Failure
}

// asFailure gives every error a class. An error of no class is this machine's or our own fault: infra.
func (r *run) asFailure(err error) *Failure {
	var f *Failure
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	if errors.As(err, &f) && !(full && f.Class == cache.Permanent) { // a full disk is nobody's fault, and passes
		return f
	}
	f = &Failure{Failure: cache.Failure{Class: cache.Infra, Message: err.Error()}, Err: err}
	if full {
		f.Rule, f.Remedy, f.Retry = DiskFull, "free some space ("+r.terms().FreeSpace+") and apply again", &Retry{Attempts: 1}
	}
	return f
}

func (r *run) logPath(id string) string { return filepath.Join(r.LogDir, id+".log") }

func (r *run) openLog(id string) (*syncedLog, error) {
	open := func() (*os.File, error) { return os.OpenFile(r.logPath(id), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) }
	f, err := open()
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(r.LogDir, 0o755); err != nil {
			return nil, err
		}
		f, err = open()
	}
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

func (l *syncedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Write(p)
}

func (l *syncedLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.f.Close()
}

// verifiedInputs checks every byte of the entries that tasks use: of each once, and again whenever its files may have changed.
type verifiedInputs struct {
	store cache.Store
	mu    sync.Mutex
	seen  map[cache.Key]func() (verified, error)
}

// verified is an entry whose bytes were checked.
type verified struct {
	cache.Entry
	seal cache.Seal
}

// sealer is a store that tells whether an entry's files may have changed since they were checked.
type sealer interface {
	GetSealed(context.Context, cache.Key) (cache.Entry, cache.Seal, error)
	Untouched(*cache.Meta, cache.Seal) bool
}

// get returns an entry, or an error when its bytes are not those that m tells of.
func (v *verifiedInputs) get(ctx context.Context, m *cache.Meta) (cache.Entry, error) {
	key := m.Key
	check := sync.OnceValues(func() (verified, error) { return v.check(ctx, key) })
	read := v.first(key, check)
	found, err := read()
	if store, ok := v.store.(sealer); ok && err == nil && !store.Untouched(&found.Meta, found.seal) {
		v.mu.Lock()
		v.seen[key] = check
		v.mu.Unlock()
		found, err = check() // which is done again only where it was not done just now
	}
	if err == nil && found.Digest != m.Digest {
		err = fmt.Errorf("entry %s: %w: it was made anew, with other bytes", key.Short(), cache.ErrMiss)
	}
	return found.Entry, err
}

// first is how an entry was checked first.
func (v *verifiedInputs) first(key cache.Key, check func() (verified, error)) func() (verified, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.seen == nil {
		v.seen = map[cache.Key]func() (verified, error){}
	}
	if v.seen[key] == nil {
		v.seen[key] = check
	}
	return v.seen[key]
}

func (v *verifiedInputs) check(ctx context.Context, key cache.Key) (found verified, err error) {
	if store, ok := v.store.(sealer); ok {
		found.Entry, found.seal, err = store.GetSealed(ctx, key)
	} else {
		found.Entry, err = v.store.Get(ctx, key, true)
	}
	return found, err
}

// remove removes a scratch directory. What stays is told: somebody has to unmount it, say. Later processes try again.
func remove(dir string, tell func(Event)) {
	if err := fs.RemoveTree(dir); err != nil {
		tell(Event{Type: Note, Reason: "left behind: " + strings.ReplaceAll(err.Error(), "\n", "; ")})
	}
}
