package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

func TestAfter(t *testing.T) {
	w := newWorld(t)
	nodes := []node{
		{at: "trial.ok", says: "1"},
		{at: "trial.bad", says: "2"},
		{at: "trial.none", says: "3", exclude: engine.Exclude{Action: engine.Blocked, Reason: "no GPU", Never: true}},
		{at: "compare.c", says: "c", then: []string{"trial.ok", "trial.bad", "trial.none"}},
		{at: "report.r", says: "r", needs: []string{"compare.c"}},
	}
	nodes[1].do = fails(failure.Permanent, "crashed")
	p := w.plan(nodes...)
	w.wantPlan(p, "trial.ok=run trial.bad=run trial.none=blocked compare.c=run report.r=run")
	w.wantReason(p, "compare.c", "comes after trial.ok, which is to be run")
	r := w.apply(nodes...)
	if r.Done != 3 || r.Failed != 1 || r.Blocked != 1 {
		t.Errorf("%+v", r)
	}
	p = w.plan(nodes...)
	w.wantPlan(p, "trial.ok=cached trial.bad=blocked trial.none=blocked compare.c=cached report.r=cached")
	text := w.content(p, "compare.c")
	for _, part := range []string{"trial.ok: 1 <nil>", "trial.bad: blocked crashed false",
		"trial.none: blocked no GPU true"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
	w.apply(nodes...)
	w.wantRan()

	nodes[1].do = nil
	w.plans.RetryFailed = true
	w.apply(nodes...)
	w.wantRan("trial.bad", "compare.c", "report.r")
	nodes[2].exclude.Never = false
	w.apply(nodes...)
	w.wantRan("compare.c", "report.r")
}

// TestUnfit has an input whose content keeps a node from running. An apply that makes the input asks for that as the
// next plan does. A result that is there stands all the same.
func TestUnfit(t *testing.T) {
	w := newWorld(t)
	unfit := "the pilot cannot be read"
	nodes := []node{
		{at: "trial.1", says: "1"},
		{at: "trial.2", says: "2", needs: []string{"trial.1"}},
		{at: "benchmark.b", says: "b", needs: []string{"trial.1", "trial.2"}},
	}
	nodes[1].unfit = func(_ context.Context, results map[string]cache.Key) string {
		if results["trial.1"].IsZero() {
			return ""
		}
		return unfit
	}
	w.wantPlan(w.plan(nodes...), "trial.1=run trial.2=run benchmark.b=run")
	if r := w.apply(nodes...); r.Done != 1 || r.Blocked != 2 || r.Failed > 0 {
		t.Errorf("%+v", r)
	}
	w.wantRan("trial.1")
	p := w.plan(nodes...)
	w.wantPlan(p, "trial.1=cached trial.2=blocked benchmark.b=blocked")
	w.wantReason(p, "trial.2", unfit)
	w.plans.Replace = func(address string) bool { return address == "trial.1" }
	w.wantPlan(w.plan(nodes...), "trial.1=run trial.2=run benchmark.b=run")
	w.plans.Replace = nil

	unfit = ""
	w.apply(nodes...)
	w.wantRan("trial.2", "benchmark.b")
	unfit = "the pilot cannot be read"
	w.wantPlan(w.plan(nodes...), "trial.1=cached trial.2=cached benchmark.b=cached")
}

// TestAfterAgain has all parts of the key settled by the apply instead of the plan: the journal does not know the
// evicted results, which had another address.
func TestAfterAgain(t *testing.T) {
	w := newWorld(t)
	nodes := []node{
		{at: "trial.t", says: "1"},
		{at: "compare.c", says: "c", then: []string{"trial.t"}},
		{at: "report.r", says: "r", needs: []string{"compare.c"}},
	}
	w.apply(nodes...)
	w.evict("trial.t", nodes...)
	nodes[0].at, nodes[1].then[0] = "trial.renamed", "trial.renamed"
	r := w.apply(nodes...)
	w.wantRan("trial.renamed")
	if r.Done != 1 || r.Cached != 2 {
		t.Errorf("%+v", r)
	}
}

// TestALostMeasurement has results that were read from an evicted one. While they are complete, it is not measured
// again. Once it is measured again, they are read again, since its result differs.
func TestALostMeasurement(t *testing.T) {
	w := newWorld(t)
	nodes := []node{
		{at: "trial.1", says: "1", makes: "first"},
		{at: "trial.2", says: "2", makes: "second", needs: []string{"trial.1"}},
		{at: "benchmark.b", says: "b", needs: []string{"trial.1", "trial.2"}, reads: true},
		{at: "compare.c", says: "c", then: []string{"trial.1", "trial.2", "benchmark.b"}},
		{at: "report.r", says: "r", needs: []string{"compare.c"}},
	}
	w.apply(nodes...)
	w.wantRan("trial.1", "trial.2", "benchmark.b", "compare.c", "report.r")
	w.evict("trial.2", nodes...)
	p := w.plan(nodes...)
	w.wantPlan(p, "trial.1=cached trial.2=cached benchmark.b=cached compare.c=cached report.r=cached")
	w.wantReason(p, "trial.2", "not needed")
	w.apply(nodes...)
	w.wantRan()

	nodes[1].makes, nodes[3].says = "other", "another margin"
	p = w.plan(nodes...)
	w.wantPlan(p, "trial.1=cached trial.2=run benchmark.b=run compare.c=run report.r=run")
	w.apply(nodes...)
	w.wantRan("trial.2", "benchmark.b", "compare.c", "report.r")
	p = w.plan(nodes...)
	w.wantPlan(p, "trial.1=cached trial.2=cached benchmark.b=cached compare.c=cached report.r=cached")
	if got := w.content(p, "report.r"); !strings.Contains(got, "b(first)(other)") || strings.Contains(got, "second") {
		t.Errorf("the report says %q", got)
	}

	w.evict("trial.2", nodes...)
	nodes[3].says = "a third margin"
	w.apply(nodes...)
	w.wantRan("trial.2", "compare.c", "report.r") // what it came out as was read before

	w.evict("trial.2", nodes...)
	nodes[3].says, nodes[1].do = "a fourth margin", fails(failure.Permanent, "crashed")
	if r := w.apply(nodes...); r.Done != 2 || r.Failed != 1 || r.Cached != 2 {
		t.Errorf("%+v", r)
	}
	p = w.plan(nodes...)
	w.wantPlan(p, "trial.1=cached trial.2=blocked benchmark.b=cached compare.c=cached report.r=cached")
	if got := w.content(p, "report.r"); !strings.Contains(got, "trial.2: blocked crashed") ||
		!strings.Contains(got, "b(first)(other)") {
		t.Errorf("the report says %q", got)
	}
}

func TestRememberedFailureIsFoundOnceTheKeyIsKnown(t *testing.T) {
	w := newWorld(t)
	nodes := []node{
		{at: "trial.t", says: "1"},
		{at: "compare.c", says: "c", then: []string{"trial.t"}, do: fails(failure.Permanent, "cannot")},
	}
	w.apply(nodes...)
	w.evict("trial.t", nodes...)
	nodes[0].at, nodes[1].then[0] = "trial.renamed", "trial.renamed"
	if r := w.apply(nodes...); r.Done != 1 || r.Failed != 1 {
		t.Errorf("%+v", r)
	}
	w.wantRan("trial.renamed")
}

// TestEndsReadTheSame checks that an apply writes the ends of failures into keys as the next plan will: a message that
// is too long for the journal, or has odd bytes, must not make the users stale.
func TestEndsReadTheSame(t *testing.T) {
	for name, message := range map[string]string{"long": strings.Repeat("é", 5000), "odd": "a\xffb\x00\u2028"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			nodes := []node{
				{at: "trial.t", says: "1", do: fails(failure.Permanent, message)},
				{at: "bench.b", says: "b", needs: []string{"trial.t"}},
				{at: "bench.c", says: "c", needs: []string{"bench.b"}},
				{at: "compare.c", says: "c", then: []string{"trial.t", "bench.b", "bench.c"}},
			}
			w.apply(nodes...)
			w.wantRan("trial.t", "compare.c")
			w.apply(nodes...)
			w.wantRan()
		})
	}
}

// TestBlockedAfterSomethingRun has a blocked node whose key depends on an end, and a node after it.
func TestBlockedAfterSomethingRun(t *testing.T) {
	w := newWorld(t)
	nodes := []node{
		{at: "trial.t", says: "1"},
		{at: "image.i", says: "i", exclude: engine.Exclude{Action: engine.Blocked, Reason: "no docker"}},
		{at: "compare.c", says: "c", then: []string{"trial.t"}, needs: []string{"image.i"}},
		{at: "report.r", says: "r", then: []string{"compare.c", "trial.t"}},
	}
	w.apply(nodes...)
	w.wantRan("trial.t", "report.r")
	w.apply(nodes...)
	w.wantRan()
}

// TestReasonDoesNotDependOnEarlierAttempts has nodes with several obstacles, of which the first plan knows only some.
func TestReasonDoesNotDependOnEarlierAttempts(t *testing.T) {
	w := newWorld(t)
	nodes := []node{
		{at: "a.bad", says: "1", do: fails(failure.Permanent, "no")},
		{at: "b.bad", says: "2", do: fails(failure.Permanent, "no")},
		{at: "i.i", says: "3", needs: []string{"a.bad"}, asks: device.Request{Memory: 1 << 40}},
		{at: "s.s", says: "4", exclude: engine.Exclude{Action: engine.Skip, Reason: "known issue"}},
		{at: "m.m", says: "5", needs: []string{"a.bad", "b.bad", "s.s", "i.i"}},
		{at: "n.n", says: "6", needs: []string{"a.bad", "b.bad", "i.i"}},
		{at: "o.o", says: "7", needs: []string{"a.bad", "b.bad"}},
		{at: "u.u", says: "9", needs: []string{"a.bad"}},
		{at: "compare.c", says: "8", then: []string{"i.i", "m.m", "n.n", "o.o"}},
	}
	w.apply(nodes[1]) // so that this failure is known already
	w.apply(nodes...)
	w.wantRan("a.bad", "compare.c")
	p := w.plan(nodes...)
	w.wantReason(p, "m.m", "needs s.s, which is skipped")
	w.wantReason(p, "n.n", "needs i.i, which is blocked")
	w.wantReason(p, "o.o", "needs a.bad, which failed")
	w.apply(nodes...)
	w.wantRan()
}

func TestOrder(t *testing.T) {
	w := newWorld(t)
	nodes := []node{
		{at: "image.i", says: "1"},
		{at: "bench.b", says: "b", order: []string{"image.i"}},
	}
	w.apply(nodes...)
	w.wantRan("image.i", "bench.b")
	nodes[0].says = "2"
	w.wantPlan(w.plan(nodes...), "image.i=cached bench.b=cached")
	nodes[1].says = "c"
	w.apply(nodes...)
	w.wantRan("image.i", "bench.b")
	nodes[0].says, nodes[0].do, nodes[1].says = "3", fails(failure.Permanent, "no"), "d"
	if r := w.apply(nodes...); r.Failed != 1 || r.Blocked != 1 {
		t.Errorf("%+v", r)
	}
}
