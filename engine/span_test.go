package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
)

// shelf is a Room of so many places. It refuses nothing while nothing is held.
type shelf struct {
	t      tb
	places int
	takes  map[*engine.Span]int // nil: each takes one

	mu    sync.Mutex
	held  map[*engine.Span]bool
	taken int
	order []string // in which spans were held
}

func (r *shelf) size(s *engine.Span) int {
	if r.takes == nil {
		return 1
	}
	return r.takes[s]
}

func (r *shelf) TryHold(s *engine.Span) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[s] {
		r.t.Errorf("%s is held twice", s.Name)
	}
	if r.taken > 0 && r.taken+r.size(s) > r.places {
		return fmt.Sprintf("%d places for %s", r.size(s), s.Name)
	}
	if r.held == nil {
		r.held = map[*engine.Span]bool{}
	}
	r.held[s] = true
	r.taken += r.size(s)
	r.order = append(r.order, s.Name)
	return ""
}

func (r *shelf) Release(s *engine.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.held[s] {
		r.t.Errorf("%s is released and not held", s.Name)
	}
	delete(r.held, s)
	r.taken -= r.size(s)
}

// empty checks that an apply gave everything back.
func (r *shelf) empty() {
	if len(r.held) > 0 {
		r.t.Errorf("%d spans are held after the end", len(r.held))
	}
}

// under makes a script check all the while that one of the node's spans is held.
func (r *shelf) under(spans []*engine.Span, d time.Duration,
	do func(context.Context, *engine.Env) error) func(context.Context, *engine.Env) error {
	check := func(when string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(spans) > 0 && !slices.ContainsFunc(spans, func(s *engine.Span) bool { return r.held[s] }) {
			r.t.Errorf("none of %d spans is held at the %s of what needs one", len(spans), when)
		}
	}
	return func(ctx context.Context, env *engine.Env) error {
		check("start")
		defer check("end")
		time.Sleep(d)
		if do == nil {
			return nil
		}
		return do(ctx, env)
	}
}

// study is a campaign of commits: of each, two images of wheels and a base that all share, and blocks that use both
// images.
func study(r *shelf, commits, blocks int) []node {
	quiet := device.Request{Quiet: true}
	var all []*engine.Span
	nodes := []node{{at: "image.base", says: "base"}}
	for c := range commits {
		span := &engine.Span{Name: fmt.Sprint(c)}
		all = append(all, span)
		own := []*engine.Span{span}
		var images, trials []string
		for _, variant := range []string{"a", "b"} {
			at := func(kind string) string { return fmt.Sprintf("%s.%d-%s", kind, c, variant) }
			nodes = append(nodes,
				node{at: at("wheel"), says: at("wheel"), do: takes(time.Hour)},
				node{at: at("image"), says: at("image"), needs: []string{"image.base", at("wheel")}, spans: own,
					do: r.under(own, time.Minute, nil)})
			images = append(images, at("image"))
		}
		for b := range blocks {
			at := fmt.Sprintf("trial.%d-%d", c, b)
			n := node{at: at, says: at, needs: images, spans: own, asks: quiet, do: r.under(own, 10*time.Minute, nil)}
			if b > 0 {
				n.then = trials[:1]
			}
			nodes, trials = append(nodes, n), append(trials, at)
		}
		nodes = append(nodes, node{at: fmt.Sprintf("compare.%d", c), says: "compare", then: trials})
	}
	nodes[0].spans, nodes[0].do = all, r.under(all, time.Minute, nil)
	return nodes
}

// With room for the images of two commits of thirty, each commit's are made once, measured with, and give way.
func TestThirtyCommitsGoThroughRoomForTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store = newMemory(w)
		r := &shelf{t: t, places: 2}
		w.applies.Room = r
		nodes := study(r, 30, 3)
		if result := w.apply(nodes...); result.Done != len(nodes) {
			t.Fatalf("%+v", result)
		}
		if len(r.order) != 30 {
			t.Errorf("spans were held %d times: %v", len(r.order), r.order)
		}
		r.empty()
	})
}

// pair is an image and a block that uses it.
func pair(r *shelf, name string) []node {
	span := []*engine.Span{{Name: name}}
	return []node{
		{at: "image." + name, says: "image " + name, spans: span, do: r.under(span, 0, nil)},
		{at: "trial." + name, says: "trial", needs: []string{"image." + name}, spans: span, do: r.under(span, 0, nil)},
	}
}

// An apply ends first the spans that a killed apply has begun.
func TestBegunSpanIsEndedFirst(t *testing.T) {
	w := newWorld(t)
	r := &shelf{t: t, places: 1}
	w.applies.Room = r
	a, b, c := pair(r, "a"), pair(r, "b"), pair(r, "c")
	w.apply(c[0])
	r.order = nil
	w.apply(slices.Concat(a, b, c)...)
	if got := strings.Join(r.order, " "); got != "c a b" {
		t.Errorf("held in the order %s", got)
	}
	r.order = nil
	w.apply(slices.Concat(a, b, c)...)
	if len(r.order) > 0 {
		t.Errorf("nothing was to be run, and %v were held", r.order)
	}
	r.empty()
}

// A large span has its turn although small ones would fit, and what needs no span does not wait for it.
func TestLargeSpanIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store = newMemory(w)
		r := &shelf{t: t, places: 3, takes: map[*engine.Span]int{}}
		w.applies.Room = r
		var nodes []node
		for i, size := range []int{1, 1, 3, 1, 1} {
			spans := []*engine.Span{{Name: fmt.Sprint(i)}}
			r.takes[spans[0]] = size
			at := fmt.Sprintf("n.%d", i)
			nodes = append(nodes, node{at: at, says: at, spans: spans,
				do: r.under(spans, time.Duration(i+1)*time.Hour, nil)})
		}
		begin := time.Now()
		w.apply(append(nodes, node{at: "n.plain", says: "plain", do: takes(24 * time.Hour)})...)
		for at, want := range map[string]time.Duration{"n.0": 0, "n.1": 0, "n.plain": 0, "n.2": 2 * time.Hour,
			"n.3": 5 * time.Hour} {
			if got := w.told(begin, engine.NodeStart, at).Round(time.Hour); got != want {
				t.Errorf("%s started after %s, want %s", at, got, want)
			}
		}
	})
}

// The images of a block are made before the host is quiet for another block, while there is room for both.
func TestSpansAreHeldBeforeTheHostIsQuiet(t *testing.T) {
	w := newWorld(t)
	w.store = newMemory(w)
	r := &shelf{t: t, places: 2}
	w.applies.Room = r
	x, y := pair(r, "x"), pair(r, "y")
	x[1].asks.Quiet, y[1].asks.Quiet = true, true
	y[0].needs = []string{"wheel.y"}
	w.apply(slices.Concat(x, y, []node{{at: "wheel.y", says: "wheel", needs: []string{"image.x"}}})...)
	if got := strings.Join(w.ran, " "); got != "image.x wheel.y image.y trial.x trial.y" {
		t.Errorf("ran in the order %s", got)
	}
}

// A span whose last node needs what is made in another one is given up for that, when nothing else can go on.
func TestSpansThatWaitForEachOther(t *testing.T) {
	w := newWorld(t)
	r := &shelf{t: t, places: 1}
	w.applies.Room = r
	x, y := pair(r, "x"), pair(r, "y")
	y[0].needs, x[1].needs = []string{"image.x"}, append(x[1].needs, "trial.y")
	if result := w.apply(append(x, y...)...); result.Done != 4 {
		t.Errorf("%+v", result)
	}
	if got := strings.Join(r.order, " "); got != "x y x" {
		t.Errorf("held in the order %s", got)
	}
	r.empty()
}

// While somebody else takes the room, an apply says what it waits for, and goes on by itself.
func TestWaitingForRoomThatOthersTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store = newMemory(w)
		r := &shelf{t: t, places: 1, taken: 1}
		w.applies.Room = r
		time.AfterFunc(time.Minute, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.taken = 0
		})
		begin := time.Now()
		w.apply(pair(r, "x")...)
		if got := w.told(begin, engine.NodeStart, "image.x"); got < time.Minute || got > time.Minute+time.Second {
			t.Errorf("started after %s", got)
		}
		if note := w.event(engine.Note, ""); note.Reason != "waiting: 1 places for x" {
			t.Errorf("%q", note.Reason)
		}
	})
}

// An apply that ends early gives back what it held.
func TestInterruptedApplyHoldsNothing(t *testing.T) {
	w := newWorld(t)
	r := &shelf{t: t, places: 1}
	w.applies.Room = r
	ctx, cancel := context.WithCancel(context.Background())
	nodes := pair(r, "x")
	nodes[0].do = func(context.Context, *engine.Env) error { cancel(); return nil }
	if _, err := w.applyPlan(ctx, w.plan(nodes...)); err == nil {
		t.Error("it was not interrupted")
	}
	if len(r.order) != 1 {
		t.Errorf("held %v", r.order)
	}
	r.empty()
}

// TestSpans: whatever the graph and however it fails, each node runs under one of its spans, none is held twice or
// after the end, and all nodes come to their ends.
func TestSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := watched(t)
		w.store = newMemory(w)
		r := &shelf{t: t, places: rapid.IntRange(1, 4).Draw(t, "places"), takes: map[*engine.Span]int{}}
		w.applies.Room = r
		var spans []*engine.Span
		for i := range rapid.IntRange(1, 4).Draw(t, "spans") {
			s := &engine.Span{Name: fmt.Sprint(i)}
			r.takes[s] = rapid.IntRange(0, r.places+1).Draw(t, "takes")
			spans = append(spans, s)
		}
		nodes := drawNodes(t, h, shape{failures: true, order: true, after: true, excludes: true})
		for i := range nodes {
			for _, s := range spans {
				if rapid.IntRange(0, 2).Draw(t, "in") == 0 {
					nodes[i].spans = append(nodes[i].spans, s)
				}
			}
			nodes[i].do = r.under(nodes[i].spans, 0, nodes[i].do)
		}
		if result := w.apply(nodes...); result.NotRun != 0 {
			t.Errorf("%+v", result)
		}
		r.empty()
	})
}
