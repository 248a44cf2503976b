// Package remote runs nodes on the machines of a cluster.
//
// A node is a job of the cluster's scheduler. The job runs "benchgraph worker", which is an apply of that one node: the
// worker takes a snapshot of the project and the inputs from the shared store, draws the same graph, and puts the
// result there. The scheduler's word about a job says only that the job is no longer running; the shared store says
// whether there is a result.
package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/internal/sh"
	"github.com/benchgraph/benchgraph/internal/sshkey"
	"github.com/benchgraph/benchgraph/remote/again"
	"github.com/benchgraph/benchgraph/remote/declared"
	"github.com/benchgraph/benchgraph/remote/detach"
	"github.com/benchgraph/benchgraph/remote/objects"
	"github.com/benchgraph/benchgraph/remote/printed"
)

// Store is a shared store, such as *shared.Store. Puts reports whether results are put there.
type Store interface {
	Puts() bool
	Sender
	Taker
}

// Sender has the entries of a machine, and sends them to the shared store. See shared.Store.
type Sender interface {
	Away(ctx context.Context) error
	Get(ctx context.Context, key cache.Key, verify bool) (cache.Entry, error)
	Send(ctx context.Context, e cache.Entry, beside string) (object string, err error)
}

// Taker takes entries of the shared store. Ask looks for a key, even if the index does not list it, and brings the
// entry here. Lay brings the files of an object into a directory, if the object is the entry with the digest. Errors
// wrap cache.ErrMiss if there is no such entry or object.
type Taker interface {
	Ask(ctx context.Context, key cache.Key) (cache.Entry, error)
	Lay(ctx context.Context, key cache.Key, object, digest, dir string) (cache.Meta, error)
}

// Drawn has the data from which a worker draws the graph of a node again.
type Drawn struct {
	Choice   json.RawMessage
	Snapshot cache.Entry // of the project
}

// Options configure an Executor.
type Options struct {
	declared.Executor
	Open    func() (job.Scheduler, error) // called once, when the first job is submitted
	Store   Store
	Bucket  bucket.Bucket             // of the shared store
	Keys    sshkey.Keys               // of the shared store; they sign outcomes as they sign entries
	Wanted  func(address string) bool // reports whether jobs get the result of a node from the shared store
	Project Project
	Environ []string // of jobs, as NAME=value
}

// Executor runs nodes as jobs.
type Executor struct {
	Options
	owner     func() (string, error) // see ownerOf
	marks     again.Marks
	unlimited atomic.Bool // a job was refused for its derived limit, so that jobs ask for none
	full      sync.Map    // names of nodes whose disks were full: other jobs avoid them
}

// NewExecutor returns an Executor.
func NewExecutor(o Options) *Executor {
	o.Open = sync.OnceValues(o.Open)
	if !o.Alike { // the variables belong to this machine
		o.Environ = nil
	}
	return &Executor{Options: o, marks: again.Marks{Dir: filepath.Join(o.Project.State, "again")},
		owner: sync.OnceValues(func() (string, error) { return ownerOf(o.Project.State) })}
}

// Take makes a node run as a job. On this machine, the node then only holds a slot for the job. drawn returns the graph
// of the node.
func (x *Executor) Take(n *engine.Node, spec *hclspec.Spec, drawn func(context.Context) (Drawn, error)) {
	asks := n.Resources
	limits := &limits{declared: declared.Timeouts(spec, n.Address)}
	n.Resources.Queue, n.Resources.Quiet = x.Name, false // the job asks for the quiet of its node
	n.Lacks, n.Checks, n.Spans = nil, nil, nil           // these are about this machine
	if !x.Kind.Alike && spec.Absolute.Some() {
		n.Lacks = func(context.Context) string { return x.lacks(spec, n) }
	}
	n.Remote = func(ctx context.Context, env *engine.Env) (time.Duration, error) {
		owner, err := x.owner()
		if err != nil {
			return 0, err
		}
		j := &attempt{Executor: x, env: env, address: n.Address, quiet: asks.Quiet, gpus: asks.GPUs.Count,
			limits: limits, counted: x.countOf(env.Key), names: map[cache.Key]string{}, digests: map[cache.Key]string{}}
		j.named, j.literal = x.named(spec, n)
		if err := j.begin(owner); err != nil {
			return 0, err
		}
		j.cpus, j.memory = cmp.Or(x.CPUs, asks.Takes()), x.Memory
		if j.memory == 0 && asks.Memory > 0 {
			j.memory = asks.Memory + asks.Memory/8 + workerMemory
		}
		err = j.run(ctx, drawn)
		return j.ran, err
	}
}

// ownerFile is the file in a project's state with the project's name among those that share a store.
const ownerFile = "owner"

// ownerOf returns the name of a project, and makes one the first time. So two checkouts have different jobs, and
// neither cancels those of the other. The caller holds the lock of applies.
func ownerOf(state string) (string, error) {
	path := filepath.Join(state, ownerFile)
	text, err := fs.ReadOwn(path)
	if err == nil && isOwner(string(text)) {
		return string(text), nil
	}
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return "", err
	}
	name := make([]byte, 4)
	_, _ = rand.Read(name) // never fails
	owner := hex.EncodeToString(name)
	return owner, fs.Replace(path, []byte(owner))
}

func isOwner(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) == 8
}

// countOf returns the file with the submissions of a node.
func (x *Executor) countOf(key cache.Key) string {
	return filepath.Join(x.Project.State, "submitted", key.String()[:24])
}

// workerMemory is the memory that the worker itself may need beside the node, in bytes: a command that reaches its own
// limit should fail by that limit, not by the job's.
const workerMemory = 1 << 30

// attempt is one attempt to run a node as a job.
type attempt struct {
	*Executor
	env        *engine.Env
	address    string
	key        string // key by which the scheduler finds the job
	counted    string // file of submissions, see countOf
	cpus, gpus int
	memory     int64
	quiet      bool // no other job may run on the machine of the job
	limits     *limits
	named      []string                   // see Request
	literal    []string                   // see Request
	names      map[cache.Key]string       // see Request
	digests    map[cache.Key]string       // see Request
	done       bool                       // the result is laid out
	unsigned   bool                       // the job's outcome is not believed
	printed    printed.Output             // output of the job
	streamed   func(within time.Duration) // ends the copying of the job's output, see stream; nil: none began

	since time.Time     // when the job was first seen to run; zero: never
	ran   time.Duration // how long it ran
}

// run submits the job, follows it to its end, and lays out the result.
func (j *attempt) run(ctx context.Context, drawn func(context.Context) (Drawn, error)) error {
	err := j.patiently(ctx, func() error { return j.take(ctx) })
	if err == nil { // an earlier apply was killed before it took this result
		j.clean(ctx)
		return nil
	}
	if f := j.failedAlone(ctx); f != nil {
		return f
	}
	scheduler, err := j.Open()
	var unseen int
	var request []byte
	if err == nil {
		unseen, err = j.unseen(ctx, scheduler)
	}
	if err == nil {
		err = j.patiently(ctx, func() (err error) {
			request, err = j.prepare(ctx, drawn)
			return err
		})
	}
	if err != nil {
		return unusable(fmt.Errorf("executor %s: %w", j.Name, err))
	}
	id, found, err := scheduler.Submit(ctx, j.describe(request))
	if err != nil {
		return j.refused(ctx, err)
	}
	if !found {
		if err := j.noteUnseen(submissions{unseen + 1, id.Name()}); err != nil {
			j.tell("jobs of the node are not counted: %v", err)
		}
	}
	verb := "is submitted"
	if limit, derived := j.limit(); derived {
		verb += ", with a time limit of " + inMinutes(limit)
	}
	if found {
		verb = "was submitted before"
	}
	j.tell("job %s %s", id.Name(), verb)
	j.env.Emit(engine.Event{Type: engine.Note, Reason: engine.Waiting + "job " + id.Name() + " to start",
		Data: map[string]any{detach.Submitted: true}})
	if j.Streams {
		j.stream(ctx, id)
		defer j.streamed(0)
	}
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go j.watch(waiting, id, stop)
	end, err := scheduler.Wait(waiting, id, func(s job.Status) {
		if s.State == "RUNNING" && j.since.IsZero() {
			j.since = time.Now()
			j.tell("job %s runs on %s", id.Name(), s.Node)
			j.lease(id)
		} else if s.State == "PENDING" && s.Reason != "" {
			j.tell(engine.Waiting+"job %s is queued: %s", id.Name(), s.Reason)
		}
	})
	if err != nil && !errors.Is(context.Cause(waiting), errWorkerEnded) {
		return j.cancel(ctx, scheduler, id, err)
	}
	return j.conclude(ctx, id, end)
}

// errWorkerEnded ends the wait for a job whose worker has left its outcome.
var errWorkerEnded = errors.New("the worker has ended")

// The bucket is asked for the outcome of a worker all the time, since the scheduler is asked less often and answers
// later. The longer the job is there, the longer is the time between two questions.
const (
	watchFirst = 100 * time.Millisecond
	watchLast  = 2 * time.Second
	watchShare = 50 // a question after each 1/50 of the time so far
)

// watch waits for the outcome of a worker without a failure, and then calls stop.
func (j *attempt) watch(ctx context.Context, id job.ID, stop context.CancelCauseFunc) {
	for begun := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(max(time.Since(begun)/watchShare, watchFirst), watchLast)):
		}
		// After a failure, the wait goes on to the end of the job: until then, the job counts as one of the key.
		if o, err := j.outcomeFrom(ctx, id.Name()); err == nil && o.Failure == nil {
			stop(errWorkerEnded)
			return
		}
	}
}

// prepare puts the inputs and the snapshot into the shared store, and returns the request.
func (j *attempt) prepare(ctx context.Context, drawn func(context.Context) (Drawn, error)) ([]byte, error) {
	for _, in := range j.env.Inputs {
		if err := j.send(ctx, in.Address, in.Entry, 0); err != nil {
			return nil, fmt.Errorf("input %s: %w", in.Address, err)
		}
	}
	d, err := drawn(ctx)
	if err == nil {
		_, err = j.Store.Send(ctx, d.Snapshot, "")
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot of the project: %w", err)
	}
	login, err := j.lend(ctx, "benchgraph-"+j.env.Key.Short(),
		cmp.Or(j.names[j.env.Key], shared.ObjectOf(j.env.Key)), objects.Name(j.key, objects.Outcome))
	if err != nil {
		return nil, err
	}
	owner, _ := j.owner()
	r := Request{j.Project, owner, objects.Round(j.key), j.env.Run, j.address, j.env.Key, d.Snapshot.Key, d.Choice,
		login, j.named, j.literal, j.names, j.digests}
	return json.MarshalIndent(r, "", "  ")
}

// mostDepth bounds how far the inputs of inputs are followed.
const mostDepth = 16

// send puts the result of a node into the shared store. For a node that the worker makes anew, such as an image, it
// sends the inputs of the node instead.
func (j *attempt) send(ctx context.Context, address string, e cache.Entry, depth int) error {
	if j.Wanted(address) {
		owner, _ := j.owner()
		object, err := j.Store.Send(ctx, e, objects.NameOfInput(owner, e))
		if j.digests[e.Key] = e.Digest; object != shared.ObjectOf(e.Key) {
			j.names[e.Key] = object
		}
		return err
	}
	lines, err := cache.ParseText(e.Text)
	if err != nil || depth > mostDepth {
		return err
	}
	for _, l := range lines {
		if l.Label != "input" || len(l.Values) != 2 {
			continue
		}
		key, err := cache.ParseKey(l.Values[1])
		if err != nil {
			continue
		}
		// an input that is not here may be in the shared store; if not, the worker makes it
		if input, err := j.Store.Get(ctx, key, true); err == nil {
			if err := j.send(ctx, input.Address, input, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *attempt) describe(request []byte) job.Job {
	limit, _ := j.limit()
	project, _ := json.Marshal(home{host(), j.Project.State}) // texts have no errors
	var full []string
	j.full.Range(func(node, _ any) bool { full = append(full, node.(string)); return true })
	return job.Job{
		Key: j.key, Exclusive: j.quiet, Name: "benchgraph " + printable.Line(j.address),
		Request: request, Project: project,
		Script: script(j.Setup) + "exec " + sh.Quote(j.Program) + " worker \"$" + job.RequestVariable + "\"\n",
		GPUs:   j.gpus, CPUs: j.cpus, Memory: j.memory, Time: limit, Environ: j.Environ, Avoids: full,
	}
}

// setupEnded begins the last line of a job whose setup failed; the exit status follows.
const setupEnded = "benchgraph: setup ended with exit status "

// script returns lines of sh that run the setup. The first line that fails ends the job: without, say, the module of a
// compiler, the job would measure in another environment.
func script(setup string) string {
	if setup == "" {
		return ""
	}
	return "trap 'echo \"" + setupEnded + "$?\" >&2' EXIT\nset -e\n" + setup + "\nset +e\ntrap - EXIT\n"
}

// lease reports that the job runs, with its devices. Only the node knows their UUIDs.
func (j *attempt) lease(id job.ID) {
	j.env.Devices = make([]string, j.gpus)
	for i := range j.env.Devices {
		j.env.Devices[i] = fmt.Sprintf("job %s, device %d", id.Name(), i)
	}
	j.env.Emit(engine.Event{Type: engine.LeaseGranted, Data: map[string]any{"devices": j.env.Devices}})
}

// tell writes a message about the job to the log and as an event.
func (j *attempt) tell(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(j.env.Log, "%s\n", text)
	j.env.Emit(engine.Event{Type: engine.Note, Reason: text})
}
