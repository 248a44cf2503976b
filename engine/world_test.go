package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// node describes one node of a story. Graphs are built from such values anew for each plan, as they are from a file.
type node struct {
	at                 string
	says               string // stands for all that determines its output
	makes              string // what comes out whatever it says; empty: what it says and what its inputs hold
	needs, order, then []string
	reads              bool // it only says what its inputs say
	exclude            engine.Exclude
	asks               device.Request
	lasts              time.Duration // declared; 0: not known
	spans              []*engine.Span
	checks             []engine.Check
	unfit              func(ctx context.Context, results map[string]cache.Key) string
	do                 func(ctx context.Context, env *engine.Env) error // before it writes its output
	// what is gone of its results outside the store; nil: nothing
	gone func() string
}

// world is a store, a journal and a pool, and what happened in them.
type world struct {
	t       tb
	dir     string
	store   cache.Store
	disk    *disk.Disk
	journal *journal.Journal
	pool    device.Pool
	plans   engine.PlanOptions  // beside the store, the journal and the pool
	applies engine.ApplyOptions // likewise
	// tasks make nothing of reasons and addresses: keys do not hold them, so who uses them describes them
	terse bool

	mu     sync.Mutex
	ran    []string // addresses, in the order in which attempts started
	events []engine.Event
}

// tb is what stories and rapid's properties have in common.
type tb interface {
	Helper()
	Cleanup(func())
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
	Fatalf(string, ...any)
}

// tempDir is a directory in memory where there is such a thing: the stories store hundreds of small results durably.
func tempDir(t tb) string {
	dir, err := os.MkdirTemp("/dev/shm", "engine-test-")
	if err != nil {
		dir, err = os.MkdirTemp("", "engine-test-")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.RemoveTree(dir) })
	return dir
}

func newWorld(t tb) *world {
	t.Helper()
	w := &world{t: t, dir: tempDir(t)}
	var err error
	if w.disk, err = disk.Open(filepath.Join(w.dir, "store")); err != nil {
		t.Fatal(err)
	}
	w.store = w.disk
	if w.journal, err = journal.Open(filepath.Join(w.dir, "journal")); err != nil {
		t.Fatal(err)
	}
	pool, err := device.NewPool(device.Options{CPUs: 4, Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	w.pool = pool
	t.Cleanup(func() {
		if err := errors.Join(pool.Close(), w.journal.Close(), w.disk.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// scripted is the Task of a story's node.
type scripted struct {
	w *world
	n node
}

func (s scripted) Describe(d *cache.Description) { d.Add("says", s.n.says) }

func (s scripted) Kept(_ context.Context, e cache.Entry) (string, error) {
	if s.n.gone == nil {
		return "", nil
	}
	if _, err := os.Stat(filepath.Join(e.Dir, "out")); err != nil {
		return "", err
	}
	return s.n.gone(), nil
}

func (s scripted) Run(ctx context.Context, env *engine.Env) error {
	s.w.mu.Lock()
	s.w.ran = append(s.w.ran, s.n.at)
	s.w.mu.Unlock()
	fmt.Fprintln(env.Log, "begin", s.n.at)
	if s.n.do != nil {
		if err := s.n.do(ctx, env); err != nil {
			return err
		}
	}
	text := s.n.makes
	if text == "" {
		text = s.n.says
		for _, in := range env.Inputs {
			bytes, err := os.ReadFile(filepath.Join(in.Dir, "out"))
			if err != nil {
				return err
			}
			text += "(" + string(bytes) + ")"
		}
		for _, end := range env.Ends {
			if s.w.terse {
				end.Reason, end.Address = "", ""
			}
			text += "[" + endText(end) + "]"
		}
	}
	fmt.Fprintln(env.Log, "end", s.n.at)
	return os.WriteFile(filepath.Join(env.Out, "out"), []byte(text), 0o644)
}

// endText is all that a task is told of an end.
func endText(e engine.End) string {
	if e.Entry.Dir != "" {
		bytes, err := os.ReadFile(filepath.Join(e.Entry.Dir, "out"))
		return fmt.Sprintf("%s: %s %v", e.Address, bytes, err)
	}
	text := fmt.Sprintf("%s: %s %s %t", e.Address, e.Action, e.Reason, e.Never)
	if e.Failure != nil {
		text += fmt.Sprintf(" %+v", *e.Failure)
	}
	return text
}

func (w *world) graph(nodes ...node) *engine.Graph {
	w.t.Helper()
	all := map[string]*engine.Node{}
	var list []*engine.Node
	for _, n := range nodes {
		kind, _, _ := strings.Cut(n.at, ".")
		made := &engine.Node{Address: n.at, Kind: kind, Task: scripted{w, n}, Exclude: n.exclude, Resources: n.asks,
			Estimate: n.lasts, Spans: n.spans, Checks: n.checks, Reads: n.reads,
			Unfit: n.unfit}
		all[n.at] = made
		list = append(list, made)
	}
	for i, n := range nodes {
		for _, link := range []struct {
			to   *[]*engine.Node
			from []string
		}{{&list[i].Needs, n.needs}, {&list[i].Order, n.order}, {&list[i].After, n.then}} {
			for _, at := range link.from {
				if all[at] == nil {
					w.t.Fatalf("%s waits for %s, which is not in the story", n.at, at)
				}
				*link.to = append(*link.to, all[at])
			}
		}
	}
	g, err := engine.NewGraph(list)
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

func (w *world) planGraph(g *engine.Graph) *engine.Plan {
	w.t.Helper()
	o := w.plans
	o.Store, o.Journal, o.Pool = w.store, w.journal, w.pool
	o.Terms.Replace, o.Terms.RetryFailed = "-replace", "-retry-failed"
	p, err := engine.NewPlan(context.Background(), g, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) plan(nodes ...node) *engine.Plan {
	w.t.Helper()
	return w.planGraph(w.graph(nodes...))
}

// applyPlan applies a plan and checks what must hold of every apply.
func (w *world) applyPlan(ctx context.Context, p *engine.Plan) (*engine.Result, error) {
	w.t.Helper()
	w.ran, w.events = nil, nil
	o := w.applies
	o.Store, o.Journal, o.Pool, o.Scratch = w.store, w.journal, w.pool, w.disk.Scratch
	o.LogDir, o.RunID = filepath.Join(w.dir, "logs"), "run"
	tell := o.Emit
	o.Emit = func(e engine.Event) {
		w.events = append(w.events, e)
		if tell != nil {
			tell(e)
		}
	}
	r, err := engine.Apply(ctx, p, o)
	w.check(p, r)
	if err == nil {
		w.checkStanding(p, r)
	}
	return r, err
}

// checkStanding holds how everything stands, as an apply tells it, against a plan that is made now.
func (w *world) checkStanding(p *engine.Plan, r *engine.Result) {
	w.t.Helper()
	plans := w.plans
	w.plans.Replace, w.plans.RetryFailed = nil, false
	now := w.planGraph(p.Graph)
	w.plans = plans
	if r.Standing == nil {
		if r.Done == len(p.Steps) {
			w.t.Errorf("%+v does not say how everything stands", *r)
		}
		return
	}
	for i := range now.Steps {
		got, want := &r.Standing.Steps[i], &now.Steps[i]
		result, _ := got.Stored()
		stored, _ := want.Stored()
		if got.Action != want.Action || got.Reason != want.Reason || got.Key != want.Key || got.Text != want.Text ||
			result.Digest != stored.Digest {
			w.t.Errorf("%s stands as %s %s (%s), a plan says %s %s (%s)", want.Node.Address, got.Action,
				got.Key.Short(), got.Reason, want.Action, want.Key.Short(), want.Reason)
		}
	}
}

// check checks what must hold of every apply: all nodes are counted, each ends once, and only when what it waits for
// has ended; each attempt has a whole log.
func (w *world) check(p *engine.Plan, r *engine.Result) {
	w.t.Helper()
	if sum := r.Done + r.Cached + r.Failed + r.Blocked + r.Skipped + r.NotRun; sum != len(p.Steps) {
		w.t.Errorf("the result %+v counts %d nodes of %d", *r, sum, len(p.Steps))
	}
	if len(r.Failures) != r.Failed {
		w.t.Errorf("%d failed, %d are listed", r.Failed, len(r.Failures))
	}
	ended, logs := map[string]bool{}, map[string]bool{}
	for _, e := range w.events {
		switch e.Type {
		case engine.NodeStart:
			n, _ := p.Graph.Node(e.Address)
			for _, dep := range slices.Concat(n.Needs, n.Order, n.After) {
				if !ended[dep.Address] {
					w.t.Errorf("%s was started before %s had ended", e.Address, dep.Address)
				}
			}
			if logs[e.Log] {
				w.t.Errorf("two attempts have the log %s", e.Log)
			}
			logs[e.Log] = true
		case engine.NodeFailed:
			if e.Retrying || e.Reason == "interrupted" {
				continue
			}
			fallthrough
		case engine.NodeDone, engine.NodeCached, engine.NodeSkipped:
			if ended[e.Address] {
				w.t.Errorf("%s ended twice", e.Address)
			}
			ended[e.Address] = true
		}
	}
	if len(ended) != len(p.Steps)-r.NotRun {
		w.t.Errorf("%d nodes ended, %d should have", len(ended), len(p.Steps)-r.NotRun)
	}
	for log := range logs {
		if _, err := os.Stat(log); err != nil {
			w.t.Error(err)
		}
	}
}

// apply plans and applies.
func (w *world) apply(nodes ...node) *engine.Result {
	w.t.Helper()
	r, err := w.applyPlan(context.Background(), w.plan(nodes...))
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// wantRan checks which nodes were run, and forgets it.
func (w *world) wantRan(want ...string) {
	w.t.Helper()
	got := slices.Clone(w.ran)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Errorf("ran %v, want %v", got, want)
	}
	w.ran = nil
}

// wantPlan checks the actions of a plan: "a.a=run b.b=cached", and that applying it agrees with it.
func (w *world) wantPlan(p *engine.Plan, want string) {
	w.t.Helper()
	var got []string
	for i := range p.Steps {
		got = append(got, fmt.Sprintf("%s=%s", p.Steps[i].Node.Address, p.Steps[i].Action))
	}
	slices.Sort(got)
	sorted := strings.Fields(want)
	slices.Sort(sorted)
	if !slices.Equal(got, sorted) {
		w.t.Errorf("plan: %v\nwant: %v", got, sorted)
	}
}

func (w *world) wantReason(p *engine.Plan, at, part string) {
	w.t.Helper()
	s, ok := p.Step(at)
	if !ok || !strings.Contains(s.Reason, part) {
		w.t.Errorf("%s: reason %q, want %q in it", at, s.Reason, part)
	}
}

// content is what the store holds for a node.
func (w *world) content(p *engine.Plan, at string) string {
	w.t.Helper()
	s, _ := p.Step(at)
	meta, ok := s.Stored()
	if !ok {
		w.t.Fatalf("%s is not stored", at)
	}
	entry, err := w.store.Get(context.Background(), meta.Key, true)
	if err != nil {
		w.t.Fatal(err)
	}
	bytes, err := os.ReadFile(filepath.Join(entry.Dir, "out"))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(bytes)
}

// evict removes a node's result from the store.
func (w *world) evict(at string, nodes ...node) {
	w.t.Helper()
	s, _ := w.plan(nodes...).Step(at)
	meta, ok := s.Stored()
	if !ok {
		w.t.Fatalf("%s is not stored", at)
	}
	if err := w.disk.Remove(meta.Key); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) event(kind engine.EventType, at string) engine.Event {
	w.t.Helper()
	for _, e := range slices.Backward(w.events) {
		if e.Type == kind && (at == "" || e.Address == at) {
			return e
		}
	}
	w.t.Fatalf("no event %s of %q", kind, at)
	return engine.Event{}
}

func (w *world) logOf(e engine.Event) string {
	w.t.Helper()
	text, err := os.ReadFile(e.Log)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(bytes.TrimSpace(text))
}

// fails is a script that fails in a class.
func fails(class failure.Class, message string) func(context.Context, *engine.Env) error {
	return func(context.Context, *engine.Env) error {
		return fmt.Errorf("wrapped: %w", &engine.Failure{
			Failure: failure.Failure{Class: class, Message: message},
			Retry:   &engine.Retry{Attempts: 2, Backoff: time.Millisecond},
		})
	}
}
