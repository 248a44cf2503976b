package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

func TestCancel(t *testing.T) {
	w := newWorld(t)
	w.applies.Parallelism = 2
	stop := errors.New("interrupted by the user")
	ctx, cancel := context.WithCancelCause(t.Context())
	started := make(chan struct{}, 2)
	wait := func(ctx context.Context, env *engine.Env) error {
		started <- struct{}{}
		<-ctx.Done()
		if env.Lease.CPUs != 1 {
			t.Errorf("lease: %+v", env.Lease)
		}
		return ctx.Err()
	}
	nodes := []node{
		{at: "a.a", says: "1", do: wait},
		{at: "b.b", says: "2", do: func(ctx context.Context, env *engine.Env) error { _ = wait(ctx, env); return nil }},
		{at: "c.c", says: "3"},
		{at: "d.d", says: "4", needs: []string{"a.a"}},
	}
	go func() {
		<-started
		<-started
		cancel(stop)
	}()
	r, err := w.applyPlan(ctx, w.plan(nodes...))
	if !errors.Is(err, stop) || r.NotRun != 4 {
		t.Errorf("%+v, %v", r, err)
	}
	w.wantRan("a.a", "b.b")
	if e := w.event(engine.NodeFailed, "a.a"); e.Reason != "interrupted" {
		t.Errorf("%+v", e)
	}
	if all := w.journal.Attempts("a.a"); len(all) != 1 || !all[0].Interrupted() {
		t.Errorf("nothing tells of the time that the interrupted attempt took: %+v", all)
	}
	if s, _ := w.plan(nodes...).Step("a.a"); s.Reason != "its last attempt was interrupted" || s.Failure != nil {
		t.Errorf("%+v", s)
	}
	nodes[0].do, nodes[1].do = nil, nil
	if r := w.apply(nodes...); r.Done != 4 {
		t.Errorf("afterwards: %+v", r)
	}
	_, err = w.applyPlan(ctx, w.plan(nodes...))
	if !errors.Is(err, stop) {
		t.Errorf("cancelled before it began: %v", err)
	}
}

func TestCancelDuringBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now()
		time.AfterFunc(time.Minute, cancel)
		r, err := w.applyPlan(ctx, w.plan(node{at: "a.a", says: "1", do: func(context.Context, *engine.Env) error {
			return &engine.Failure{Failure: failure.Failure{Class: failure.Transient},
				Retry: &engine.Retry{Attempts: 2, Backoff: time.Hour}}
		}}))
		if !errors.Is(err, context.Canceled) || r.NotRun != 1 || time.Since(begin) != time.Minute {
			t.Errorf("%+v, %v after %s", r, err, time.Since(begin))
		}
	})
}

func TestParallelism(t *testing.T) {
	w := newWorld(t)
	var now, most atomic.Int64
	busy := func(context.Context, *engine.Env) error {
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		time.Sleep(time.Millisecond)
		return nil
	}
	var nodes []node
	for i := range 24 {
		nodes = append(nodes, node{at: fmt.Sprint("a.", i), says: fmt.Sprint(i), do: busy,
			asks: device.Request{CPUs: 1 + i%2}})
	}
	for _, story := range []struct{ parallelism, want int64 }{{2, 2}, {0, 4}, {1, 1}} {
		w.applies.Parallelism = int(story.parallelism)
		most.Store(0)
		for i := range nodes {
			nodes[i].says += "+"
		}
		w.apply(nodes...)
		if got := most.Load(); got > story.want {
			t.Errorf("parallelism %d: %d ran at once", story.parallelism, got)
		}
	}
}

func TestInfeasible(t *testing.T) {
	w := newWorld(t)
	nodes := []node{
		{at: "a.a", says: "1", asks: device.Request{GPUs: device.GPUs{Count: 8}}},
		{at: "b.b", says: "2", needs: []string{"a.a"}},
	}
	p := w.plan(nodes...)
	w.wantPlan(p, "a.a=blocked b.b=blocked")
	w.wantReason(p, "a.a", "needs 8 devices; this machine has none")
	w.wantReason(p, "b.b", "needs a.a, which is blocked")
	for i := range p.Steps {
		if !p.Steps[i].Never {
			t.Errorf("%s could be served some day", p.Steps[i].Node.Address)
		}
	}
	w.apply(nodes...)
	w.wantRan()
}

func TestQuietComesLastAndAlone(t *testing.T) {
	w := newWorld(t)
	var now atomic.Int64
	loud := func(context.Context, *engine.Env) error {
		now.Add(1)
		time.Sleep(time.Millisecond)
		now.Add(-1)
		return nil
	}
	quiet := func(context.Context, *engine.Env) error {
		if n := now.Add(100); n != 100 {
			t.Errorf("%d others run beside a quiet one", n-100)
		}
		time.Sleep(time.Millisecond)
		now.Add(-100)
		return nil
	}
	var nodes []node
	for i := range 6 {
		nodes = append(nodes,
			node{at: fmt.Sprint("bench.", i), says: fmt.Sprint(i), do: quiet,
				asks: device.Request{Quiet: true, CPUs: 1 + i%3}},
			node{at: fmt.Sprint("wheel.", i), says: fmt.Sprint(i), do: loud})
	}
	w.apply(nodes...)
	for i, at := range w.ran {
		if strings.HasPrefix(at, "wheel") != (i < 6) {
			t.Fatalf("ran %v", w.ran)
		}
	}
}

// TestAnotherProcessHolds shares a host lock with a second pool, as two processes do.
func TestAnotherProcessHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		lock := filepath.Join(w.dir, "host.lock")
		open := func() *device.LocalPool {
			p, err := device.NewPool(device.Options{CPUs: 4, HostLock: lock})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
			return p
		}
		mine, theirs := open(), open()
		w.pool = mine
		held, why := theirs.TryAcquire(device.Request{})
		if held == nil {
			t.Fatal(why.WaitsFor)
		}
		// while nobody looks: a lock that was just released has no owner to name
		time.AfterFunc(time.Hour+250*time.Millisecond, held.Release)
		begin := time.Now()
		w.apply(node{at: "bench.b", says: "1", asks: device.Request{Quiet: true}})
		if took := time.Since(begin); took < time.Hour || took > time.Hour+time.Second {
			t.Errorf("it ran after %s", took)
		}
		notes := 0
		for _, e := range w.events {
			if e.Type == engine.Note {
				notes++
			}
		}
		if notes != 1 {
			t.Errorf("%d times it was told what is waited for", notes)
		}
	})
}

func TestTaskEvents(t *testing.T) {
	w := newWorld(t)
	left := make(chan struct{})
	var emit func(engine.Event)
	n := node{at: "bench.b", says: "1", do: func(_ context.Context, env *engine.Env) error {
		emit = env.Emit
		env.Emit(engine.Event{Type: engine.SampleTaken, Address: "spoofed", Data: map[string]any{"value": 1.5}})
		if entries, err := os.ReadDir(env.Work); err != nil || len(entries) != 0 {
			t.Errorf("work: %v, %v", entries, err)
		}
		ro := filepath.Join(env.Work, "read-only")
		return errors.Join(os.MkdirAll(filepath.Join(ro, "x"), 0o755), os.Chmod(ro, 0o555))
	}}
	w.apply(n)
	e := w.event(engine.SampleTaken, "bench.b")
	if e.Attempt != 1 || e.Time.IsZero() || e.Key.IsZero() || e.Data["value"] != 1.5 {
		t.Errorf("%+v", e)
	}
	go func() { // what a task left behind must not be stuck for ever
		emit(engine.Event{Type: engine.Note})
		close(left)
	}()
	<-left
	done := w.event(engine.NodeDone, "bench.b")
	if text := w.logOf(done); text != "begin bench.b\nend bench.b" {
		t.Errorf("log: %q", text)
	}
	scratch, err := filepath.Glob(filepath.Join(w.dir, "store", "tmp", "*", "*"))
	if err != nil || len(scratch) != 0 {
		t.Errorf("left behind: %v, %v", scratch, err)
	}
}

// brokenStore fails with an error other than a miss.
type brokenStore struct {
	cache.Store
	get, find, put error
}

func (b *brokenStore) Get(ctx context.Context, k cache.Key, verify bool) (cache.Entry, error) {
	if b.get != nil {
		return cache.Entry{}, b.get
	}
	return b.Store.Get(ctx, k, verify)
}

func (b *brokenStore) Find(ctx context.Context, k cache.Key) (cache.Entry, error) {
	if b.find != nil {
		return cache.Entry{}, b.find
	}
	return b.Store.Find(ctx, k)
}

func (b *brokenStore) Put(ctx context.Context, draft cache.Draft) (cache.Entry, error) {
	if b.put != nil {
		return cache.Entry{}, b.put
	}
	return b.Store.Put(ctx, draft)
}

func TestBrokenStore(t *testing.T) {
	broken := errors.New("too many open files")
	t.Run("while planning", func(t *testing.T) {
		w := newWorld(t)
		_, err := engine.NewPlan(t.Context(), w.graph(chain()...),
			engine.PlanOptions{Store: &brokenStore{Store: w.store, get: broken}, Journal: w.journal})
		if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "source.a: ") {
			t.Errorf("%v", err)
		}
	})
	t.Run("while looking once more", func(t *testing.T) {
		w := newWorld(t)
		w.store = &brokenStore{Store: w.store, find: broken}
		r, err := w.applyPlan(t.Context(), w.plan(chain()...))
		if !errors.Is(err, broken) || r.NotRun != 2 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("while storing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			store := &brokenStore{Store: w.store, put: broken}
			w.store = store
			r := w.apply(chain()...)
			if r.Failed != 2 || r.Failures[0].Failure.Class != failure.Infra {
				t.Errorf("%+v", r)
			}
			store.put = nil
			if r := w.apply(chain()...); r.Done != 4 {
				t.Errorf("%+v", r)
			}
		})
	})
}

// TestJournalThatCannotBeWritten checks that such a journal ends the apply, with no attempt left running.
func TestJournalThatCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	journal, err := journal.Open(filepath.Join(w.dir, "other"))
	if err != nil {
		t.Fatal(err)
	}
	good := w.journal
	w.journal = journal
	p := w.plan(chain()...)
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := w.applyPlan(t.Context(), p)
	w.journal = good
	if err == nil || !strings.Contains(err.Error(), "journal") || r.Done+r.NotRun != 4 || r.Done > 2 {
		t.Errorf("%+v, %v", r, err)
	}
}
