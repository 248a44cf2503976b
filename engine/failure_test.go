package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

func TestPermanentFailureIsRemembered(t *testing.T) {
	w := newWorld(t)
	nodes := []node{
		{at: "source.a", says: "a", do: fails(failure.Permanent, "the patch does not apply")},
		{at: "wheel.w", says: "w", needs: []string{"source.a"}},
		{at: "bench.b", says: "b", needs: []string{"wheel.w"}},
		{at: "source.z", says: "z"},
	}
	r := w.apply(nodes...)
	w.wantRan("source.a", "source.z")
	if r.Done != 1 || r.Failed != 1 || r.Blocked != 2 || r.Failures[0].Address != "source.a" {
		t.Errorf("%+v", r)
	}
	if e := w.event(engine.NodeSkipped, "wheel.w"); e.Reason != "needs source.a, which failed" {
		t.Errorf("reason: %q", e.Reason)
	}
	if text := w.logOf(w.event(engine.NodeFailed, "source.a")); !strings.HasPrefix(text, "begin source.a") ||
		!strings.Contains(text, "wrapped: the patch does not apply") {
		t.Errorf("log: %q", text)
	}

	p := w.plan(nodes...)
	w.wantPlan(p, "source.a=blocked wheel.w=blocked bench.b=blocked source.z=cached")
	w.wantReason(p, "source.a", "failed before: the patch does not apply")
	again := w.apply(nodes...)
	w.wantRan()
	if again.Failed != 1 || again.Failures[0].Failure.Message != "the patch does not apply" ||
		again.Failures[0].Log != r.Failures[0].Log {
		t.Errorf("%+v, want the failure of %+v", again, r)
	}

	w.plans.RetryFailed = true
	w.wantReason(w.plan(nodes...), "source.a", "its last attempt failed: the patch does not apply")
	nodes[0].do = nil
	w.apply(nodes...)
	w.wantRan("source.a", "wheel.w", "bench.b")
	w.plans.RetryFailed = false
	w.wantPlan(w.plan(nodes...), "source.a=cached wheel.w=cached bench.b=cached source.z=cached")
}

func TestGaveUp(t *testing.T) {
	w := newWorld(t)
	nodes := []node{
		{at: "fetch.f", says: "f", do: fails(failure.Transient, "connection reset")},
		{at: "task.t", says: "t", needs: []string{"fetch.f"}},
	}
	if r := w.apply(nodes...); r.Failed != 1 || r.Blocked != 1 {
		t.Errorf("%+v", r)
	}
	w.wantRan("fetch.f", "fetch.f")
	attempts := w.journal.Attempts("fetch.f")
	if len(attempts) != 2 || attempts[0].ID == attempts[1].ID || attempts[1].Number != 2 {
		t.Errorf("%+v", attempts)
	}
	last := attempts[1]
	w.plans.GaveUp, w.plans.RetryFailed = map[cache.Key]journal.Attempt{last.Key: last}, true
	w.wantReason(w.plan(nodes...), "fetch.f", "gave up: connection reset")
	w.apply(nodes...)
	w.wantRan()
	w.plans.GaveUp, w.plans.RetryFailed = nil, false
	w.wantPlan(w.plan(nodes...), "fetch.f=run task.t=run")
	w.plans.AsIs = true
	p := w.plan(nodes...)
	w.wantPlan(p, "fetch.f=blocked task.t=blocked")
	w.wantReason(p, "fetch.f", "failed: connection reset; the next apply tries it again")
	w.plans.AsIs = false
	nodes[0].do, nodes[1].says = nil, "u"
	w.apply(nodes...)
	w.evict("fetch.f", nodes...)
	nodes[1].says = "v"
	w.plans.AsIs = true
	w.wantPlan(w.plan(nodes...), "fetch.f=run task.t=run")
}

func TestRetriesBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var starts []time.Duration
		begin := time.Now()
		flaky := func(context.Context, *engine.Env) error {
			starts = append(starts, time.Since(begin))
			if len(starts) < 5 {
				return &engine.Failure{Failure: failure.Failure{Class: failure.Infra, Message: "no space"},
					Retry: &engine.Retry{Attempts: 5, Backoff: time.Minute}}
			}
			return nil
		}
		r := w.apply(node{at: "task.flaky", says: "1", do: flaky})
		if r.Done != 1 || r.Failed != 0 {
			t.Errorf("%+v", r)
		}
		if got := fmt.Sprint(starts); got != "[0s 1m0s 3m0s 7m0s 15m0s]" {
			t.Errorf("attempts at %s", got)
		}
		if e := w.event(engine.NodeStart, "task.flaky"); e.Attempt != 5 || e.Reason != "attempt 5" {
			t.Errorf("%+v", e)
		}
	})
}

func TestErrorOfNoClassIsInfra(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.apply(node{at: "task.t", says: "1", do: func(context.Context, *engine.Env) error {
			return errors.New("odd")
		}})
		w.wantRan("task.t", "task.t", "task.t")
		if r.Failed != 1 || r.Failures[0].Failure.Class != failure.Infra {
			t.Errorf("%+v", r)
		}
	})
}

func TestFailFast(t *testing.T) {
	for name, story := range map[string]struct {
		bad, flaky time.Duration // until they fail
		failed     int
	}{
		"another fails after it":   {time.Second, time.Minute, 2},
		"another is to be retried": {time.Minute, time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.applies.FailFast = true
				begin := time.Now()
				r := w.apply(
					node{at: "a.bad", says: "1", do: func(ctx context.Context, env *engine.Env) error {
						time.Sleep(story.bad)
						return fails(failure.Permanent, "no")(ctx, env)
					}},
					node{at: "b.flaky", says: "2", do: func(context.Context, *engine.Env) error {
						time.Sleep(story.flaky)
						return &engine.Failure{Failure: failure.Failure{Class: failure.Transient},
							Retry: &engine.Retry{Attempts: 9, Backoff: time.Hour}}
					}},
					node{at: "c.c", says: "3", needs: []string{"a.bad"}},
					node{at: "d.d", says: "4", do: func(context.Context, *engine.Env) error {
						time.Sleep(2 * time.Second)
						return nil
					}},
					node{at: "e.e", says: "5", needs: []string{"d.d"}, do: func(context.Context, *engine.Env) error {
						time.Sleep(2 * time.Minute)
						return nil
					}},
					node{at: "f.f", says: "6", needs: []string{"e.e"}},
				)
				if r.Failed != story.failed || r.Blocked != 1 || r.NotRun < 1 {
					t.Errorf("%+v", r)
				}
				if took := time.Since(begin); took > 3*time.Minute {
					t.Errorf("it went on for %s", took)
				}
			})
		})
	}
}

func TestPanicIsAFailureOfOneNode(t *testing.T) {
	w := newWorld(t)
	nodes := []node{
		{at: "a.panics", says: "1", do: func(_ context.Context, env *engine.Env) error {
			env.Ends[0].Never = true
			return nil
		}},
		{at: "b.b", says: "2"},
		{at: "c.gone", says: "3", do: func(context.Context, *engine.Env) error { runtime.Goexit(); return nil }},
	}
	synctest.Test(t, func(t *testing.T) {
		r := w.apply(nodes...)
		if r.Done != 1 || r.Failed != 2 {
			t.Errorf("%+v", r)
		}
	})
	text := w.logOf(w.event(engine.NodeFailed, "a.panics"))
	if !strings.Contains(text, "panic: runtime error: index out of range") ||
		!strings.Contains(text, "failure_test.go:") {
		t.Errorf("the log does not show where it was: %s", text)
	}
	w.wantPlan(w.plan(nodes...), "a.panics=run b.b=cached c.gone=run")
}
