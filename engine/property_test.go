package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// host watches which nodes run at the same time.
type host struct {
	t tb

	mu                    sync.Mutex
	running, cpus, quiets int
	most                  int // may run at once; 0: any number
}

const hostCPUs = 4 // of a world's pool

func (h *host) occupy(env *engine.Env) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running++
	h.cpus += env.Lease.CPUs
	if env.Lease.Quiet {
		h.quiets++
	}
	if h.cpus > hostCPUs || h.quiets > 0 && h.running > 1 || h.most > 0 && h.running > h.most {
		h.t.Errorf("%d run at once on %d cores, %d of them quiet", h.running, h.cpus, h.quiets)
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.running--
		h.cpus -= env.Lease.CPUs
		if env.Lease.Quiet {
			h.quiets--
		}
	}
}

// do makes a node's script: whether and how it fails depends only on its description, as in real work.
func (h *host) do(says string) func(context.Context, *engine.Env) error {
	return func(_ context.Context, env *engine.Env) error {
		defer h.occupy(env)()
		class, fails := strings.CutPrefix(strings.Trim(says, "0123456789-"), "fails:")
		if !fails {
			return nil
		}
		return &engine.Failure{
			Failure: failure.Failure{Class: failure.Class(class), Message: says},
			Retry:   &engine.Retry{Attempts: 2, Backoff: time.Microsecond},
		}
	}
}

// shape lists the features of a drawn graph beside nodes that need each other and succeed.
type shape struct{ failures, excludes, order, after, twins, sameOutput bool }

// drawSays draws what determines a node's output.
func drawSays(t *rapid.T, s shape, i int) string {
	number := i
	if s.twins {
		number = rapid.IntRange(0, 3).Draw(t, "says")
	}
	if s.failures && rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
		class := rapid.SampledFrom([]failure.Class{failure.Permanent, failure.Invalid, failure.Fixable,
			failure.Transient,
			failure.Infra}).Draw(t, "class")
		return fmt.Sprintf("%d-fails:%s", number, class)
	}
	return fmt.Sprint(number)
}

func drawNodes(t *rapid.T, h *host, s shape) []node {
	count := rapid.IntRange(1, 9).Draw(t, "count")
	nodes := make([]node, count)
	for i := range nodes {
		n := node{at: fmt.Sprintf("n.%d", i), says: drawSays(t, s, i)}
		for j := range i {
			links := []*[]string{&n.needs, &n.needs}
			if s.order {
				links = append(links, &n.order)
			}
			if s.after {
				links = append(links, &n.then)
			}
			if k := rapid.IntRange(0, 5).Draw(t, "link"); k < len(links) {
				*links[k] = append(*links[k], nodes[j].at)
			}
		}
		if s.sameOutput && rapid.IntRange(0, 3).Draw(t, "makes") == 0 {
			// Twins have the same output, since they are the same work.
			n.makes = "output of " + strings.TrimLeft(n.says, "0123456789-")
			n.says += "-1"
		}
		if s.excludes {
			switch rapid.IntRange(0, 9).Draw(t, "exclude") {
			case 0:
				n.exclude = engine.Exclude{Action: engine.Skip, Reason: "known issue"}
			case 1:
				n.exclude = engine.Exclude{Action: engine.Blocked, Reason: "no docker"}
			case 2:
				n.asks.Memory = 1 << 40
			}
		}
		n.reads = rapid.Bool().Draw(t, "reads")
		n.asks.CPUs = rapid.IntRange(0, 3).Draw(t, "cpus")
		n.asks.Quiet = rapid.IntRange(0, 4).Draw(t, "quiet") == 0
		n.do = h.do(n.says)
		nodes[i] = n
	}
	return nodes
}

// retried reports whether the node's description makes it fail with a class that is retried.
func retried(says string) bool {
	_, class, _ := strings.Cut(says, "fails:")
	return failure.Class(strings.Trim(class, "0123456789-")).Retried()
}

// dependents returns a node and the nodes whose keys depend on its key.
func dependents(nodes []node, at string) map[string]bool {
	all := map[string]bool{at: true}
	for _, n := range nodes {
		for _, dep := range slices.Concat(n.needs, n.then) {
			all[n.at] = all[n.at] || all[dep]
		}
	}
	return all
}

func watched(t *rapid.T) (*world, *host) {
	w := newWorld(t)
	h := &host{t: t, most: rapid.IntRange(0, 3).Draw(t, "parallelism")}
	w.applies.Parallelism = h.most
	return w, h
}

// TestApplyTwice: an apply of any graph ends every node once, in order and within the limits (world.check and host). A
// second apply finds only the random failures to do.
func TestApplyTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := watched(t)
		s := shape{failures: true, after: true, sameOutput: true}
		// This combination gives the second apply new facts: a blocked node is up to date once its twin was run.
		if s.twins = rapid.Bool().Draw(t, "twins"); !s.twins {
			s.order, s.excludes = true, true
		}
		nodes := drawNodes(t, h, s)
		first := w.apply(nodes...)
		if first.NotRun != 0 {
			t.Errorf("%+v", first)
		}
		second := w.apply(nodes...)
		for _, at := range w.ran {
			i := slices.IndexFunc(nodes, func(n node) bool { return n.at == at })
			if !retried(nodes[i].says) {
				t.Errorf("%s was run again", at)
			}
		}
		if second.Done != 0 || second.Failed > first.Failed {
			t.Errorf("first %+v, then %+v", first, second)
		}
	})
}

// TestChangeRunsDependentNodes: after a change of one node, exactly the nodes run whose keys depend on it.
func TestChangeRunsDependentNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := watched(t)
		nodes := drawNodes(t, h, shape{after: true})
		w.apply(nodes...)
		i := rapid.IntRange(0, len(nodes)-1).Draw(t, "changed")
		nodes[i].says += "-2"
		want := dependents(nodes, nodes[i].at)
		p := w.plan(nodes...)
		w.apply(nodes...)
		for _, n := range nodes {
			if slices.Contains(w.ran, n.at) != want[n.at] {
				t.Errorf("%s changed; ran %v", nodes[i].at, w.ran)
			}
			if s, _ := p.Step(n.at); want[n.at] != (s.Action == engine.Run) {
				t.Errorf("%s changed; plan: %s %s", nodes[i].at, n.at, s.Action)
			}
		}
	})
}

// TestLookingAheadFindsTheSame: a plan that asks the store for many results at once is the plan that asks for one after
// the other, as it does where nodes that come after another stand between all of them.
func TestLookingAheadFindsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := watched(t)
		nodes := drawNodes(t, h, shape{failures: true, excludes: true, order: true, after: true, twins: true,
			sameOutput: true})
		w.apply(nodes...)
		var between []node
		for i, n := range nodes {
			apart := node{at: fmt.Sprintf("apart.%d", i), exclude: engine.Exclude{Action: engine.Skip}}
			if i > 0 {
				apart.then = []string{"apart.0"}
			}
			s, _ := w.plan(nodes...).Step(n.at)
			if meta, ok := s.Stored(); ok && rapid.IntRange(0, 2).Draw(t, "evict") == 0 {
				if err := w.disk.Remove(meta.Key); err != nil {
					t.Fatal(err)
				}
			}
			if rapid.IntRange(0, 4).Draw(t, "change") == 0 {
				n.says += "-3"
				nodes[i] = n
			}
			between = append(between, apart, n)
		}
		ahead, single := w.plan(nodes...), w.plan(between...)
		for _, n := range nodes {
			got, _ := ahead.Step(n.at)
			want, _ := single.Step(n.at)
			if got.Key != want.Key || got.Action != want.Action || got.Reason != want.Reason ||
				got.Never != want.Never {
				t.Errorf("%s: %s %s, and one by one %s %s", n.at, got.Action, got.Reason, want.Action, want.Reason)
			}
		}
	})
}

// TestHistoryDoesNotMatter: changes, evictions and a new plan lead to the same results as a build from nothing.
func TestHistoryDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := watched(t)
		// A result outlives what later keeps its node from running, so graphs with such things do depend on history;
		// and of two failures that keep a node from running, the second is not tried when the first is known.
		s := shape{failures: true, after: true, twins: true, sameOutput: true}
		w.terse = true
		nodes := drawNodes(t, h, s)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			w.apply(nodes...)
			if p := w.plan(nodes...); rapid.Bool().Draw(t, "evict") {
				i := rapid.IntRange(0, len(p.Steps)-1).Draw(t, "evicted")
				if meta, ok := p.Steps[i].Stored(); ok {
					if err := w.disk.Remove(meta.Key); err != nil {
						t.Fatal(err)
					}
				}
			}
			i := rapid.IntRange(0, len(nodes)-1).Draw(t, "changed")
			if nodes[i].makes == "" {
				nodes[i].says = drawSays(t, s, i)
			} else {
				nodes[i].says += "-2"
			}
			nodes[i].do = h.do(nodes[i].says)
		}
		fresh := newWorld(t)
		fresh.applies, fresh.terse = w.applies, true
		fresh.apply(nodes...)
		w.apply(nodes...)
		a, b := fresh.plan(nodes...), w.plan(nodes...)
		for i := range a.Steps {
			at := a.Steps[i].Node.Address
			_, inA := a.Steps[i].Stored()
			_, inB := b.Steps[i].Stored()
			if inA && inB && fresh.content(a, at) != w.content(b, at) {
				t.Errorf("%s: from nothing %q, with a history %q", at, fresh.content(a, at), w.content(b, at))
			}
			if len(a.Graph.Users(a.Steps[i].Node)) == 0 && inA != inB {
				t.Errorf("%s: stored: from nothing %t (%s), with a history %t (%s)", at, inA, a.Steps[i].Reason, inB,
					b.Steps[i].Reason)
			}
		}
	})
}

// TestReadyOrder: nodes that the pool grants start by the longest remaining path, as the journal forecasts it.
func TestReadyOrder(t *testing.T) {
	w := newWorld(t)
	w.applies.Parallelism = 1
	w.store = newMemory(w) // no result waits for a disk, while which others may run
	nodes := []node{
		{at: "short.a", says: "1"},
		{at: "long.a", says: "2"},
		{at: "long.b", says: "3", needs: []string{"long.a"}},
		{at: "long.c", says: "4", needs: []string{"long.b"}},
		{at: "slow.a", says: "5"},
	}
	if err := w.journal.Record(journal.Attempt{ID: "x", Address: "slow.a", Duration: time.Hour}); err != nil {
		t.Fatal(err)
	}
	w.apply(nodes...)
	if got := strings.Join(w.ran, " "); got != "slow.a long.a long.b short.a long.c" {
		t.Errorf("ran in the order %s", got)
	}
	if s, _ := w.plan(node{at: "slow.a", says: "6"}).Step("slow.a"); s.Estimate < time.Second {
		t.Errorf("estimate %s", s.Estimate)
	}
}
