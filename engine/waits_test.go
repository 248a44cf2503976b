package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
)

// slowStore is a store whose disk takes a minute for each result.
type slowStore struct{ cache.Store }

func (s slowStore) Put(ctx context.Context, draft cache.Draft) (cache.Entry, error) {
	draft.Waits()
	time.Sleep(time.Minute)
	draft.Waits = nil
	return s.Store.Put(ctx, draft)
}

// takes makes a task run for a time.
func takes(d time.Duration) func(context.Context, *engine.Env) error {
	return func(context.Context, *engine.Env) error { time.Sleep(d); return nil }
}

// told is when, counted from the start of the apply, a node was told to have started or to be done.
func (w *world) told(begin time.Time, kind engine.EventType, at string) time.Duration {
	return w.event(kind, at).Time.Sub(begin)
}

// A result that waits for the disk takes no slot and no cores; what needs it, or the host for itself, waits with it.
func TestOthersRunWhileAResultWaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store = slowStore{newMemory(w)}
		w.applies.Parallelism = 1
		all := device.Request{CPUs: 4, Memory: 1 << 30}
		begin := time.Now()
		r := w.apply(
			node{at: "a.first", says: "1", do: takes(time.Second), asks: all},
			node{at: "b.other", says: "2", do: takes(time.Second), asks: all},
			node{at: "c.user", says: "3", needs: []string{"a.first"}},
			node{at: "d.quiet", says: "4", asks: device.Request{Quiet: true}},
		)
		if r.Done != 4 {
			t.Fatalf("%+v", r)
		}
		start := func(at string) time.Duration { return w.told(begin, engine.NodeStart, at).Round(time.Second) }
		if got := start("b.other"); got != time.Second {
			t.Errorf("what needs nothing of it started after %s", got)
		}
		if got := start("c.user"); got != 61*time.Second {
			t.Errorf("what needs it started after %s", got)
		}
		if done := w.told(begin, engine.NodeDone, "c.user"); start("d.quiet") < done.Round(time.Second) {
			t.Errorf("the quiet one started after %s, before all was on the disk at %s", start("d.quiet"), done)
		}
	})
}

// toldStore is a slowStore that keeps what it is told to expect.
type toldStore struct {
	slowStore
	told *[]bool
}

func (s toldStore) Expect(more bool) { *s.told = append(*s.told, more) }

// The store knows whether it pays to wait for more results: not when all that runs waits for the disk.
func TestStoreIsToldWhetherMoreResultsAreOnTheirWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var told []bool
		w.store = toldStore{slowStore{newMemory(w)}, &told}
		w.apply(
			node{at: "a.first", says: "1", do: takes(time.Second)},
			node{at: "b.other", says: "2", do: takes(2 * time.Second)},
			node{at: "c.user", says: "3", do: takes(time.Second), needs: []string{"a.first"}},
		)
		// Two run, both wait; the user runs, and waits.
		if want := []bool{true, false, true, false}; !slices.Equal(told, want) {
			t.Errorf("told %v, want %v", told, want)
		}
		told = nil
		w.apply(node{at: "d.bad", says: "4", do: func(context.Context, *engine.Env) error {
			return errors.New("no result")
		}})
		if len(told) == 0 || told[len(told)-1] {
			t.Errorf("told %v, and after the last one failed nothing is on its way", told)
		}
	})
}

// A disk that cannot keep up slows the rest down in the end.
func TestResultsThatWaitForTheDiskAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store = slowStore{newMemory(w)}
		w.applies.Parallelism = 1
		var nodes []node
		for i := range 100 {
			nodes = append(nodes, node{at: fmt.Sprintf("a.%03d", i), says: fmt.Sprint(i)})
		}
		begin := time.Now()
		w.apply(nodes...)
		late := 0
		for _, n := range nodes {
			if w.told(begin, engine.NodeStart, n.at) >= time.Minute {
				late++
			}
		}
		if late != 36 {
			t.Errorf("%d of 100 nodes waited for the disk, want all but 64", late)
		}
	})
}
