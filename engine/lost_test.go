package engine_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// blocks returns two blocks, their samples, a comparison and its report.
func blocks() []node {
	return []node{
		{at: "trial.1", says: "1", makes: "first"},
		{at: "trial.2", says: "2", makes: "second", needs: []string{"trial.1"}},
		{at: "benchmark.b", says: "b", needs: []string{"trial.1", "trial.2"}, reads: true},
		{at: "compare.c", says: "c", then: []string{"trial.1", "trial.2", "benchmark.b"}},
		{at: "report.r", says: "r", needs: []string{"compare.c"}},
	}
}

// tooLarge is a request that exceeds every machine of a story.
var tooLarge = device.Request{Memory: 1 << 40}

// The raw output of a block is evicted, and the machine cannot make it again. The end of the block does not change: its
// users are up to date, and none is blocked.
func TestEvictedResultThatCannotBeMadeKeepsItsEnd(t *testing.T) {
	w := newWorld(t)
	nodes := blocks()
	w.apply(nodes...)
	w.evict("trial.2", nodes...)
	nodes[1].asks = tooLarge
	p := w.plan(nodes...)
	w.wantPlan(p, "trial.1=cached trial.2=cached benchmark.b=cached compare.c=cached report.r=cached")
	w.wantReason(p, "trial.2", "not in the store, and not needed")
	if r := w.apply(nodes...); r.Blocked != 0 || r.Cached != 5 {
		t.Errorf("%+v", r)
	}
	w.wantRan()

	// A comparison that must read the block does without it, and says so. Earlier results that read it stand.
	before := nodes[3].says
	nodes[3].says = "another margin"
	p = w.plan(nodes...)
	w.wantPlan(p, "trial.1=cached trial.2=blocked benchmark.b=cached compare.c=run report.r=run")
	if r := w.apply(nodes...); r.Done != 2 || r.Blocked != 1 || r.Cached != 2 {
		t.Errorf("%+v", r)
	}
	p = w.plan(nodes...)
	w.wantPlan(p, "trial.1=cached trial.2=blocked benchmark.b=cached compare.c=cached report.r=cached")
	if got := w.content(p, "report.r"); !strings.Contains(got, "trial.2: blocked") ||
		!strings.Contains(got, "b(first)(second)") {
		t.Errorf("the report says %q", got)
	}
	w.apply(nodes...)
	w.wantRan()

	// Both results stand, each with its own key.
	nodes[3].says = before
	w.wantPlan(w.plan(nodes...), "trial.1=cached trial.2=cached benchmark.b=cached compare.c=cached report.r=cached")

	// A machine that can make the block again does so for the comparison that was made without it.
	nodes[3].says, nodes[1].asks = "another margin", device.Request{}
	w.wantPlan(w.plan(nodes...), "trial.1=cached trial.2=run benchmark.b=run compare.c=run report.r=run")
	w.apply(nodes...)
	if got := w.content(w.plan(nodes...), "report.r"); !strings.Contains(got, "trial.2: second") {
		t.Errorf("the report says %q", got)
	}
}

// All nodes before a comparison may be evicted: the journal knows how they ended, and no node needs their bytes.
func TestEvictedResultWithoutReadersIsNotMadeAgain(t *testing.T) {
	w := newWorld(t)
	nodes := blocks()
	w.apply(nodes...)
	for _, at := range []string{"trial.1", "trial.2", "benchmark.b"} {
		w.evict(at, nodes...)
	}
	w.wantPlan(w.plan(nodes...), "trial.1=cached trial.2=cached benchmark.b=cached compare.c=cached report.r=cached")
	w.apply(nodes...)
	w.wantRan()
}

// Without the journal, an evicted node counts as successful if a result that was made from its result is stored.
func TestResultOfAUserProvesSuccess(t *testing.T) {
	w := newWorld(t)
	nodes := blocks()
	w.apply(nodes...)
	w.evict("trial.2", nodes...)
	old := w.journal
	t.Cleanup(func() { old.Close() })
	var err error
	if w.journal, err = journal.Open(filepath.Join(w.dir, "another journal")); err != nil {
		t.Fatal(err)
	}
	w.wantPlan(w.plan(nodes...), "trial.1=cached trial.2=cached benchmark.b=cached compare.c=cached report.r=cached")
	w.apply(nodes...)
	w.wantRan()
}

// A failure is an end like a result: the nodes before it are not made again for it.
func TestFailureNeedsNoEvictedResults(t *testing.T) {
	w := newWorld(t)
	nodes := blocks()[:4]
	nodes[3].do = fails(failure.Permanent, "cannot")
	w.apply(nodes...)
	w.evict("trial.2", nodes...)
	p := w.plan(nodes...)
	w.apply(nodes...)
	w.wantRan()
	if s, _ := p.Step("compare.c"); w.event(engine.NodeFailed, "compare.c").Key != s.Key {
		t.Error("its key changed though nothing was run")
	}
}

// A node that failed while reading a result reads again when the result is made again.
func TestFailedReaderReadsAgain(t *testing.T) {
	w := newWorld(t)
	nodes := blocks()
	nodes[2].do = fails(failure.Permanent, "a sample is missing")
	w.apply(nodes...)
	w.evict("trial.2", nodes...)
	w.wantPlan(w.plan(nodes...), "trial.1=cached trial.2=cached benchmark.b=blocked compare.c=cached report.r=cached")
	nodes[1].makes, nodes[2].do, nodes[3].says = "whole", nil, "another margin"
	w.wantPlan(w.plan(nodes...), "trial.1=cached trial.2=run benchmark.b=run compare.c=run report.r=run")
	w.apply(nodes...)
	if got := w.content(w.plan(nodes...), "report.r"); !strings.Contains(got, "b(first)(whole)") {
		t.Errorf("the report says %q", got)
	}
}

func TestReplaceOfAResultThatCannotBeMade(t *testing.T) {
	replace := func(w *world, at string) { w.plans.Replace = func(a string) bool { return a == at } }
	t.Run("itself", func(t *testing.T) {
		w := newWorld(t)
		nodes := blocks()
		w.apply(nodes...)
		nodes[1].asks = tooLarge
		replace(w, "trial.2")
		p := w.plan(nodes...)
		w.wantPlan(p, "trial.1=cached trial.2=blocked benchmark.b=cached compare.c=cached report.r=cached")
		w.wantReason(p, "trial.2", "asked for by -replace; ")
		w.wantReason(p, "trial.2", "; the result that is there stands")
		if s, _ := p.Step("trial.2"); !s.Never {
			t.Error("it could be made some day")
		}
		if r := w.apply(nodes...); r.Blocked != 1 || r.Cached != 4 {
			t.Errorf("%+v", r)
		}
		w.wantRan()
		if got := w.content(w.plan(nodes...), "trial.2"); got != "second" {
			t.Errorf("its result is %q", got)
		}
	})
	t.Run("what is made of it", func(t *testing.T) {
		w := newWorld(t)
		nodes := blocks()
		w.apply(nodes...)
		nodes[0].makes, nodes[1].asks = "another", tooLarge
		replace(w, "trial.1")
		w.wantPlan(w.plan(nodes...), "trial.1=run trial.2=cached benchmark.b=run compare.c=run report.r=run")
		if r := w.apply(nodes...); r.Blocked != 0 {
			t.Errorf("%+v", r)
		}
		w.plans.Replace = nil
		p := w.plan(nodes...)
		w.wantPlan(p, "trial.1=cached trial.2=cached benchmark.b=cached compare.c=cached report.r=cached")
		if got := w.content(p, "report.r"); !strings.Contains(got, "b(another)(second)") {
			t.Errorf("the report says %q", got)
		}
	})
	t.Run("what only that would use", func(t *testing.T) {
		w := newWorld(t)
		nodes := chain()
		w.apply(nodes...)
		nodes[0].asks = tooLarge
		replace(w, "source.a")
		p := w.plan(nodes...)
		w.wantPlan(p, "source.a=run source.b=cached wheel.w=cached bench.serve=cached")
		if s, _ := p.Step("wheel.w"); s.Reason != "up to date" {
			t.Errorf("wheel.w: %s", s.Reason)
		}
		w.apply(nodes...)
		w.wantRan("source.a")
	})
	t.Run("what comes after it, once it is lost", func(t *testing.T) {
		w := newWorld(t)
		nodes := blocks()
		w.apply(nodes...)
		w.evict("trial.2", nodes...)
		nodes[1].asks = tooLarge
		replace(w, "compare.c")
		w.wantPlan(w.plan(nodes...), "trial.1=cached trial.2=blocked benchmark.b=cached compare.c=run report.r=run")
		w.apply(nodes...)
		w.plans.Replace = nil
		p := w.plan(nodes...)
		w.wantPlan(p, "trial.1=cached trial.2=blocked benchmark.b=cached compare.c=cached report.r=cached")
		if got := w.content(p, "report.r"); !strings.Contains(got, "trial.2: blocked") {
			t.Errorf("the report says %q: what was to be replaced was kept", got)
		}
	})
	t.Run("a failure", func(t *testing.T) {
		w := newWorld(t)
		nodes := blocks()
		nodes[1].do = fails(failure.Permanent, "crashed")
		w.apply(nodes...)
		nodes[1].asks = tooLarge
		w.plans.RetryFailed = true
		p := w.plan(nodes...)
		w.wantPlan(p, "trial.1=cached trial.2=blocked benchmark.b=blocked compare.c=cached report.r=cached")
		w.wantReason(p, "trial.2", "failed before: crashed; it cannot be tried again here: ")
		if r := w.apply(nodes...); r.Failed != 1 || r.Blocked != 1 {
			t.Errorf("%+v", r)
		}
		w.wantRan()
		nodes[1].asks, nodes[1].do = device.Request{}, nil
		w.apply(nodes...)
		w.wantRan("trial.2", "benchmark.b", "compare.c", "report.r")
	})
}

// TestStoredResultStands: results are evicted, nodes become impossible, and replacements are requested. A stored result
// is never removed for a node that cannot run, and a second apply finds nothing to do.
func TestStoredResultStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := watched(t)
		nodes := drawNodes(t, h, shape{failures: rapid.Bool().Draw(t, "failures"), order: true, after: true,
			sameOutput: true})
		reading := rapid.Bool().Draw(t, "reading")
		for i := range nodes {
			nodes[i].reads = nodes[i].reads && reading
			// A random failure is not stored as an end.
			if retried(nodes[i].says) {
				nodes[i].says = fmt.Sprint(i)
				nodes[i].do = h.do(nodes[i].says)
			}
		}
		w.apply(nodes...)
		first := w.plan(nodes...)
		lost, anew, incomplete := map[string]bool{}, map[string]bool{}, map[string]bool{}
		// nodes with a stored outcome for their whole key; the reason why other nodes cannot run may change
		firm := map[string]bool{}
		replacing := rapid.Bool().Draw(t, "replacing")
		for i := range nodes {
			at := nodes[i].at
			s, _ := first.Step(at)
			if meta, ok := s.Stored(); ok && rapid.IntRange(0, 2).Draw(t, "lost") == 0 {
				lost[at] = true
				if err := w.disk.Remove(meta.Key); err != nil {
					t.Fatal(err)
				}
			}
			firm[at] = s.Action == engine.Cached || s.Failure != nil
			for _, dep := range slices.Concat(nodes[i].needs, nodes[i].then) {
				firm[at] = firm[at] && firm[dep]
			}
			anew[at] = replacing && rapid.IntRange(0, 3).Draw(t, "replaced") == 0
			incomplete[at] = rapid.IntRange(0, 3).Draw(t, "incomplete") == 0
		}
		here := slices.Clone(nodes)
		for i := range here {
			if rapid.Bool().Draw(t, "cannot") {
				here[i].asks.Memory = tooLarge.Memory
			}
		}
		w.plans.Replace = func(at string) bool { return anew[at] }
		w.plans.Incomplete = func(at string) bool { return incomplete[at] }
		w.plans.RetryFailed = replacing && rapid.Bool().Draw(t, "retrying")
		p := w.plan(here...)
		for i := range p.Steps {
			s, at := &p.Steps[i], p.Steps[i].Node.Address
			was, _ := first.Step(at)
			_, stored := s.Stored()
			switch {
			case lost[at] || !firm[at] || s.Action == engine.Run && (replacing || reading):
			case was.Failure != nil:
				if s.Failure == nil && s.Action != engine.Run {
					t.Errorf("%s failed, and is %s now: %s", at, s.Action, s.Reason)
				}
			case was.Action == engine.Cached && !stored:
				t.Errorf("%s is stored, and is %s now: %s", at, s.Action, s.Reason)
			case s.Action == engine.Run:
				t.Errorf("%s is stored, and is to be run: %s", at, s.Reason)
			}
		}
		if _, err := w.applyPlan(context.Background(), p); err != nil {
			t.Fatal(err)
		}
		for i := range p.Steps {
			for _, dep := range p.Steps[i].Node.After {
				if s, _ := p.Step(dep.Address); p.Steps[i].Action == engine.Run && s.Action == engine.Blocked &&
					s.Failure == nil {
					return // it was made without that, which is another key for what is made of it
				}
			}
		}
		w.plans.Replace, w.plans.RetryFailed = nil, false
		w.apply(here...)
		w.wantRan()
	})
}
