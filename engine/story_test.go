package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// chain is a small build: two sources, a wheel of both, a benchmark of the wheel.
func chain() []node {
	return []node{
		{at: "bench.serve", says: "serve", needs: []string{"wheel.w"}},
		{at: "source.a", says: "rev a1"},
		{at: "source.b", says: "rev b1"},
		{at: "wheel.w", says: "build", needs: []string{"source.a", "source.b"}},
	}
}

func TestNothingStored(t *testing.T) {
	w := newWorld(t)
	p := w.plan(chain()...)
	w.wantPlan(p, "source.a=run source.b=run wheel.w=run bench.serve=run")
	w.wantReason(p, "source.a", "no result yet")
	w.wantReason(p, "wheel.w", "needs source.a, which is to be run")
	r := w.apply(chain()...)
	if r.Done != 4 {
		t.Errorf("%+v", r)
	}
	w.wantRan("source.a", "source.b", "wheel.w", "bench.serve")
	p = w.plan(chain()...)
	w.wantPlan(p, "source.a=cached source.b=cached wheel.w=cached bench.serve=cached")
	if got, want := w.content(p, "bench.serve"), "serve(build(rev a1)(rev b1))"; got != want {
		t.Errorf("the result is %q, want %q", got, want)
	}
	if r := w.apply(chain()...); r.Cached != 4 {
		t.Errorf("the second apply: %+v", r)
	}
	w.wantRan()
}

func TestOneInputChanged(t *testing.T) {
	w := newWorld(t)
	w.apply(chain()...)
	changed := chain()
	changed[2].says = "rev b2"
	p := w.plan(changed...)
	w.wantPlan(p, "source.a=cached source.b=run wheel.w=run bench.serve=run")
	w.wantReason(p, "source.b", `says changed from "rev b1" to "rev b2"`)
	w.apply(changed...)
	w.wantRan("source.b", "wheel.w", "bench.serve")
	w.wantPlan(w.plan(chain()...), "source.a=cached source.b=cached wheel.w=cached bench.serve=cached")
}

func TestRenamedIsTheSameWork(t *testing.T) {
	w := newWorld(t)
	w.apply(chain()...)
	renamed := chain()
	renamed[1].at, renamed[3].needs[0] = "source.renamed", "source.renamed"
	w.apply(renamed...)
	w.wantRan()
}

func TestEvictedIntermediate(t *testing.T) {
	w := newWorld(t)
	w.apply(chain()...)
	w.evict("wheel.w", chain()...)
	w.evict("source.a", chain()...)
	p := w.plan(chain()...)
	w.wantPlan(p, "source.a=cached source.b=cached wheel.w=cached bench.serve=cached")
	w.wantReason(p, "wheel.w", "not needed: all that uses it is up to date")
	w.wantReason(p, "source.a", "not needed: all that uses it is up to date")
	if s, _ := p.Step("wheel.w"); func() bool { _, ok := s.Stored(); return ok }() {
		t.Error("what is not in the store counts as stored")
	}
	w.apply(chain()...)
	w.wantRan()

	other := chain()
	other[0].says = "serve differently"
	p = w.plan(other...)
	w.wantPlan(p, "source.a=run source.b=cached wheel.w=run bench.serve=run")
	w.wantReason(p, "source.a", "no longer in the store")
	w.apply(other...)
	w.wantRan("source.a", "wheel.w", "bench.serve")
}

func TestDamagedResultIsReportedAndMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.apply(chain()...)
	s, _ := w.plan(chain()...).Step("bench.serve")
	meta, _ := s.Stored()
	entry, err := w.disk.Get(t.Context(), meta.Key, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(entry.Dir); err != nil {
		t.Fatal(err)
	}
	p := w.plan(chain()...)
	w.wantPlan(p, "source.a=cached source.b=cached wheel.w=cached bench.serve=run")
	w.wantReason(p, "bench.serve", "its result is damaged")
	w.apply(chain()...)
	w.wantRan("bench.serve")
}

func TestEvictedAndImpossibleIsNotNeeded(t *testing.T) {
	w := newWorld(t)
	w.apply(chain()...)
	w.evict("wheel.w", chain()...)
	here := chain()
	here[3].asks.Memory = 1 << 40
	p := w.plan(here...)
	w.wantPlan(p, "source.a=cached source.b=cached wheel.w=cached bench.serve=cached")
	here[0].says = "serve differently"
	p = w.plan(here...)
	w.wantPlan(p, "source.a=cached source.b=cached wheel.w=blocked bench.serve=blocked")
	for _, at := range []string{"wheel.w", "bench.serve"} {
		if s, _ := p.Step(at); !s.Never {
			t.Errorf("%s could be served some day: %s", at, s.Reason)
		}
	}
	if r := w.apply(here...); r.Blocked != 2 || r.Cached != 2 {
		t.Errorf("%+v", r)
	}
}

// A part of a result may be kept elsewhere, as an image is by its engine. When that part is lost, so is the result: it
// is made anew, but only for something that is to be run.
func TestResultWithMissingPartIsMadeAgainWhenNeeded(t *testing.T) {
	w := newWorld(t)
	gone := ""
	story := func() []node {
		nodes := chain()
		nodes[3].gone = func() string { return gone }
		nodes[3].do = func(context.Context, *engine.Env) error { gone = ""; return nil }
		return nodes
	}
	w.apply(story()...)
	gone = "its image was removed"
	p := w.plan(story()...)
	w.wantPlan(p, "source.a=cached source.b=cached wheel.w=cached bench.serve=cached")
	w.wantReason(p, "wheel.w", "its image was removed, and not needed")
	w.apply(story()...)
	w.wantRan()

	other := story()
	other[0].says = "serve differently"
	p = w.plan(other...)
	w.wantPlan(p, "source.a=cached source.b=cached wheel.w=run bench.serve=run")
	w.wantReason(p, "wheel.w", "its image was removed")
	other[3].makes = "a new one"
	w.apply(other...)
	w.wantRan("wheel.w", "bench.serve")
	p = w.plan(other...)
	w.wantPlan(p, "source.a=cached source.b=cached wheel.w=cached bench.serve=cached")
	if got, want := w.content(p, "bench.serve"), "serve differently(a new one)"; got != want {
		t.Errorf("the result is %q, want %q: the entry of what is gone was kept", got, want)
	}
}

// If a node lost its part outside of the store, an apply may give it the same content as before when it makes it anew.
func TestTheSecondChanceWantsTheWholeResult(t *testing.T) {
	w := newWorld(t)
	gone := ""
	nodes := chain()
	nodes[2].makes = "the same source"
	nodes[3].gone = func() string { return gone }
	w.apply(nodes...)
	gone = "its image was removed"
	nodes[3].do = func(context.Context, *engine.Env) error { gone = ""; return nil }
	nodes[2].says, nodes[0].says = "only a comment changed", "serve differently"
	w.apply(nodes...)
	w.wantRan("source.b", "wheel.w", "bench.serve")
}

func TestSecondChance(t *testing.T) {
	w := newWorld(t)
	nodes := chain()
	nodes[3].makes = "the same wheel"
	w.apply(nodes...)
	nodes[2].says = "only a comment changed"
	w.apply(nodes...)
	w.wantRan("source.b", "wheel.w")
	if e := w.event(engine.NodeCached, "bench.serve"); !strings.Contains(e.Reason, "came out the same") {
		t.Errorf("reason: %q", e.Reason)
	}
	p := w.plan(nodes...)
	w.wantPlan(p, "source.a=cached source.b=cached wheel.w=cached bench.serve=cached")
	w.wantReason(p, "bench.serve", "came out the same")
	w.apply(nodes...)
	w.wantRan()
}

func TestSecondChanceSeesItsAfterNodes(t *testing.T) {
	w := newWorld(t)
	nodes := []node{
		{at: "source.a", says: "a"},
		{at: "bench.b", says: "1"},
		{at: "compare.c", says: "c", needs: []string{"source.a"}, then: []string{"bench.b"}},
	}
	w.apply(nodes...)
	nodes[1].says = "2"
	w.apply(nodes...)
	w.wantRan("bench.b", "compare.c")
	if got := w.content(w.plan(nodes...), "compare.c"); got != "c(a)[bench.b: 2 <nil>]" {
		t.Errorf("a comparison of old results: %q", got)
	}
	nodes[1].says, nodes[1].makes = "3", "2"
	w.apply(nodes...)
	w.wantRan("bench.b")
}

func TestTwins(t *testing.T) {
	w := newWorld(t)
	nodes := []node{
		{at: "source.one", says: "same"},
		{at: "source.two", says: "same"},
		{at: "wheel.one", says: "w", needs: []string{"source.one"}},
		{at: "wheel.two", says: "w", needs: []string{"source.two"}},
		{at: "bench.both", says: "b", needs: []string{"wheel.one", "wheel.two"}},
	}
	p := w.plan(nodes...)
	w.wantPlan(p, "source.one=run source.two=cached wheel.one=run wheel.two=cached bench.both=run")
	w.wantReason(p, "wheel.two", "the same work as wheel.one")
	w.apply(nodes...)
	w.wantRan("source.one", "wheel.one", "bench.both")
	p = w.plan(nodes...)
	w.wantPlan(p, "source.one=cached source.two=cached wheel.one=cached wheel.two=cached bench.both=cached")
	if got := w.content(p, "bench.both"); got != "b(w(same))(w(same))" {
		t.Error(got)
	}
}

func TestTwinOfAFailure(t *testing.T) {
	w := newWorld(t)
	nodes := []node{
		{at: "wheel.one", says: "w", do: fails(failure.Permanent, "no compiler")},
		{at: "wheel.two", says: "w", do: fails(failure.Permanent, "no compiler")},
		{at: "compare.c", says: "c", then: []string{"wheel.two"}},
	}
	r := w.apply(nodes...)
	w.wantRan("wheel.one", "compare.c")
	if r.Failed != 2 || r.Failures[1].Failure.Message != "no compiler" || r.Failures[0].Log != r.Failures[1].Log {
		t.Errorf("%+v", r)
	}
	w.apply(nodes...)
	w.wantRan()
}

func TestTwinOfOneThatCannotRun(t *testing.T) {
	w := newWorld(t)
	nodes := []node{
		{at: "image.broken", says: "i", do: fails(failure.Permanent, "broken")},
		{at: "wheel.one", says: "w", order: []string{"image.broken"}},
		{at: "wheel.two", says: "w"},
	}
	if r := w.apply(nodes...); r.Done != 1 || r.Failed != 1 || r.Blocked != 1 {
		t.Errorf("%+v", r)
	}
	w.wantRan("image.broken", "wheel.two")
}

func TestExcluded(t *testing.T) {
	skip := engine.Exclude{Action: engine.Skip, Reason: "known issue"}
	lack := engine.Exclude{Action: engine.Blocked, Reason: "no docker", Never: true}
	t.Run("skip", func(t *testing.T) {
		w := newWorld(t)
		w.apply(chain()...)
		nodes := chain()
		nodes[3].exclude = skip
		p := w.plan(nodes...)
		w.wantPlan(p, "source.a=cached source.b=cached wheel.w=skip bench.serve=cached")
		nodes[0].says = "other"
		p = w.plan(nodes...)
		w.wantPlan(p, "source.a=cached source.b=cached wheel.w=skip bench.serve=skip")
		w.wantReason(p, "bench.serve", "needs wheel.w, which is skipped")
		if r := w.apply(nodes...); r.Skipped != 2 || r.Cached != 2 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("blocked", func(t *testing.T) {
		w := newWorld(t)
		nodes := chain()
		nodes[3].exclude = lack
		p := w.plan(nodes...)
		w.wantPlan(p, "source.a=skip source.b=skip wheel.w=blocked bench.serve=blocked")
		w.wantReason(p, "source.a", "no node that is to run uses it")
		if s, _ := p.Step("bench.serve"); !s.Never || s.Reason != "needs wheel.w, which is blocked" {
			t.Errorf("%+v", s)
		}
		if r := w.apply(nodes...); r.Skipped != 2 || r.Blocked != 2 {
			t.Errorf("%+v", r)
		}
		w.wantRan()
	})
	t.Run("too small a machine prepares", func(t *testing.T) {
		w := newWorld(t)
		nodes := chain()
		nodes[3].asks = tooLarge
		p := w.plan(nodes...)
		w.wantPlan(p, "source.a=run source.b=run wheel.w=blocked bench.serve=blocked")
		if r := w.apply(nodes...); r.Done != 2 || r.Blocked != 2 {
			t.Errorf("%+v", r)
		}
		w.wantPlan(w.plan(nodes...), "source.a=cached source.b=cached wheel.w=blocked bench.serve=blocked")
	})
	t.Run("blocked with a result", func(t *testing.T) {
		w := newWorld(t)
		w.apply(chain()...)
		nodes := chain()
		nodes[3].exclude = lack
		nodes[0].says = "other"
		w.wantPlan(w.plan(nodes...), "source.a=cached source.b=cached wheel.w=cached bench.serve=run")
		w.apply(nodes...)
		w.wantRan("bench.serve")
	})
	t.Run("not needed at several removes", func(t *testing.T) {
		w := newWorld(t)
		nodes := []node{
			{at: "a.a", says: "a"},
			{at: "b.b", says: "b", needs: []string{"a.a"}},
			{at: "c.c", says: "c", needs: []string{"b.b"}, exclude: lack},
		}
		p := w.plan(nodes...)
		w.wantPlan(p, "a.a=skip b.b=skip c.c=blocked")
		w.wantReason(p, "a.a", "no node that is to run uses it")
	})
}

func TestReplace(t *testing.T) {
	w := newWorld(t)
	nodes := chain()
	w.apply(nodes...)
	w.plans.Replace = func(at string) bool { return at == "wheel.w" }
	p := w.plan(nodes...)
	w.wantPlan(p, "source.a=cached source.b=cached wheel.w=run bench.serve=run")
	w.wantReason(p, "wheel.w", "-replace")
	w.apply(nodes...)
	w.wantRan("wheel.w") // it came out the same, so what uses it stands
	for i := range nodes {
		if nodes[i].at == "wheel.w" {
			nodes[i].makes = "another wheel, by chance"
		}
	}
	w.apply(nodes...)
	w.wantRan("wheel.w", "bench.serve")
	w.plans.Replace = nil
	w.wantPlan(w.plan(nodes...), "source.a=cached source.b=cached wheel.w=cached bench.serve=cached")
	if got := w.content(w.plan(nodes...), "wheel.w"); got != "another wheel, by chance" {
		t.Errorf("the old result was kept: %q", got)
	}
	w.plans.Replace = func(at string) bool { return at == "wheel.w" || at == "bench.serve" }
	w.apply(nodes...)
	w.wantRan("wheel.w", "bench.serve")
}

func TestRetryOfAnIncompleteResult(t *testing.T) {
	w := newWorld(t)
	nodes := chain()
	w.apply(nodes...)
	w.plans.Incomplete = func(at string) bool { return at == "bench.serve" }
	w.wantPlan(w.plan(nodes...), "source.a=cached source.b=cached wheel.w=cached bench.serve=cached")
	w.plans.RetryFailed = true
	p := w.plan(nodes...)
	w.wantPlan(p, "source.a=cached source.b=cached wheel.w=cached bench.serve=run")
	w.wantReason(p, "bench.serve", "asked for by -retry-failed")
	w.apply(nodes...)
	w.wantRan("bench.serve")

	w.plans.Replace = func(at string) bool { return at == "wheel.w" }
	w.apply(nodes...)
	w.wantRan("wheel.w", "bench.serve") // although the wheel came out the same
	w.plans.Replace = nil

	nodes[slices.IndexFunc(nodes, func(n node) bool { return n.at == "bench.serve" })].asks.Memory = 1 << 50
	p = w.plan(nodes...)
	w.wantReason(p, "bench.serve", "asked for by -retry-failed; ")
	w.wantReason(p, "bench.serve", "the result that is there stands")
}

func TestDamagedInput(t *testing.T) {
	w := newWorld(t)
	w.apply(chain()...)
	changed := chain()
	changed[0].says = "other"
	p := w.plan(changed...)
	s, _ := p.Step("wheel.w")
	meta, _ := s.Stored()
	entry, err := w.store.Get(t.Context(), meta.Key, false)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(entry.Dir, "out")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	old[0] ^= 1
	if err := os.WriteFile(file, old, 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := w.applyPlan(t.Context(), p)
	if err != nil || r.Failed != 1 || r.Failures[0].Failure.Class != failure.Infra ||
		!strings.Contains(r.Failures[0].Failure.Message, "wheel.w") {
		t.Errorf("%+v, %v", r, err)
	}
	w.wantRan()
	if !strings.Contains(w.logOf(w.event(engine.NodeFailed, "bench.serve")), "wheel.w") {
		t.Error("the log does not say what failed")
	}
	w.apply(changed...)
	w.wantRan("wheel.w", "bench.serve")
}

func TestSubset(t *testing.T) {
	w := newWorld(t)
	nodes := append(chain(), node{at: "compare.c", says: "c", then: []string{"bench.serve"}})
	is := func(names ...string) func(string) bool {
		return func(at string) bool { return slices.Contains(names, at) }
	}
	sub := func(target, exclude func(string) bool) string {
		g, err := w.graph(nodes...).Subset(target, exclude)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, n := range g.Nodes() {
			names = append(names, n.Address)
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	for _, story := range []struct {
		target, exclude func(string) bool
		want            string
	}{
		{nil, nil, "bench.serve compare.c source.a source.b wheel.w"},
		{is("wheel.w"), nil, "source.a source.b wheel.w"},
		{is("compare.c"), nil, "bench.serve compare.c source.a source.b wheel.w"},
		{nil, is("wheel.w"), "compare.c source.a source.b"},
		{nil, is("source.a"), "compare.c source.b"},
		{is("wheel.w"), is("source.a"), ""},
		{is("source.a", "source.b"), is("source.a"), "source.b"},
		{is("nothing"), nil, ""},
	} {
		if got := sub(story.target, story.exclude); got != story.want {
			t.Errorf("subset: %s, want %s", got, story.want)
		}
	}
	w.apply(nodes...)
	w.evict("wheel.w", nodes...)
	g, err := w.graph(nodes...).Subset(is("wheel.w"), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.wantPlan(w.planGraph(g), "source.a=cached source.b=cached wheel.w=run")
	g, err = w.graph(nodes...).Subset(is("wheel.w", "bench.serve"), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.wantPlan(w.planGraph(g), "source.a=cached source.b=cached wheel.w=run bench.serve=cached")
}

func TestEndOfAPlan(t *testing.T) {
	w := newWorld(t)
	nodes := []node{
		{at: "a.ok", says: "1"},
		{at: "b.bad", says: "2", do: fails(failure.Permanent, "crashed")},
		{at: "c.c", says: "3", needs: []string{"b.bad"}},
	}
	w.apply(nodes...)
	p := w.plan(nodes...)
	for at, want := range map[string]string{
		"a.ok": "a.ok: 1 <nil>", "c.c": "c.c: blocked needs b.bad, which failed false",
		"b.bad": "b.bad: blocked crashed false {Class:permanent Rule: Stage: Subject: Evidence: Message:crashed " +
			"Remedy: Log:}",
	} {
		s, _ := p.Step(at)
		end, err := p.End(t.Context(), w.store, s)
		if err != nil || endText(end) != want {
			t.Errorf("%s, %v, want %s", endText(end), err, want)
		}
	}
	if c := p.Counts(); c[engine.Cached] != 1 || c[engine.Blocked] != 2 {
		t.Errorf("%v", c)
	}
}
