package round_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/campaign/round"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/executortest"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/tasks"
)

// A baseline and two variants, each of which needs a task of its own.
const three = `
variant "base" {
  baseline = true
}
variant "one" {}
variant "two" {}
commit "c" {}
task "made" {
  for_each = candidates
  command  = "echo ${each.key} > $OUT/file"
  fixes    = [fix.key]
}
fix "key" {
  detect = "no key"
  effect = "neutral"
  run    = ["true"]
}
benchmark "speed" {
  for_each = candidates
  data     = { "file" = task.made[each.key] }
  command  = "./prog"
  design {
    samples = 4
    max     = 8
  }
  metrics {
    metric "v" {
      match  = "v: ([0-9.]+)"
      better = "higher"
    }
  }
}
compare "all" {
  of = [benchmark.speed]
}
`

// project is a directory with a store and a journal, whose graph the test plans round by round.
type project struct {
	t       *testing.T
	facts   *tasks.Facts
	choice  tasks.Choice
	journal *journal.Journal
	pool    device.Pool
}

func open(t *testing.T, file string) *project {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "benchmarks.hcl"), []byte(file), 0o644))
	spec, _, diags := hclspec.Load(hclspec.Options{Dir: dir})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	store, err := disk.Open(filepath.Join(dir, "store"))
	must(t, err)
	journal, err := journal.Open(filepath.Join(dir, "journal"))
	must(t, err)
	pool, err := device.NewPool(device.Options{CPUs: 2, Cores: device.Cores, Memory: 8 << 30})
	must(t, err)
	t.Cleanup(func() {
		pool.Close()
		journal.Close()
		store.Close()
	})
	return &project{t: t, choice: tasks.NewChoice(), journal: journal, pool: pool,
		facts: tasks.NewFacts(tasks.Config{
			StateDir: dir, Store: store, Journal: journal, Stat: cache.OpenStatCache(filepath.Join(dir, "stat")),
			Pool: pool, Host: machine(), HTTP: http.DefaultClient, Progress: io.Discard,
			Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir},
		}, spec, &lockfile.Lock{}),
	}
}

// machine returns an executor on which the speed of a variant swings, so that verdicts stay open for long.
func machine() executor.Executor {
	var mu sync.Mutex
	runs := map[string]int{}
	fake := executortest.NewFake()
	fake.On("./prog", func(cmd executor.Command) executortest.FakeRun {
		mu.Lock()
		defer mu.Unlock()
		member := filepath.Base(cmd.Dir)
		runs[member]++
		v := 1000
		if member == "one" {
			v += 80 * (runs[member] % 2)
		}
		return executortest.FakeRun{Stdout: fmt.Sprintf("v: %d\n", v+runs[member]%3)}
	})
	return fake.On("echo", func(cmd executor.Command) executortest.FakeRun {
		for _, v := range cmd.Env {
			if out, ok := strings.CutPrefix(v, "OUT="); ok {
				_ = os.WriteFile(filepath.Join(out, "file"), []byte(strings.Join(cmd.Argv, " ")), 0o644)
			}
		}
		return executortest.FakeRun{}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plan plans the graph of the choice as it is now.
func (p *project) plan() *round.Round {
	p.t.Helper()
	graph, drawing, err := tasks.Graph(p.t.Context(), p.facts, p.choice)
	must(p.t, err)
	plan, err := engine.NewPlan(p.t.Context(), graph, engine.PlanOptions{
		Store: p.facts.Store, Journal: p.journal, Pool: p.pool})
	must(p.t, err)
	return &round.Round{Stored: &results.Stored{Drawing: drawing, Plan: plan}, Next: &p.choice}
}

// apply runs the plan.
func (p *project) apply(r *round.Round) {
	p.t.Helper()
	_, err := engine.Apply(p.t.Context(), r.Plan, engine.ApplyOptions{Store: p.facts.Store, Journal: p.journal,
		Pool: p.pool, Scratch: p.facts.Store.Scratch, LogDir: filepath.Join(p.facts.StateDir, "logs"), RunID: "test"})
	must(p.t, err)
}

// fail remembers a failure of a node's step.
func (p *project) fail(r *round.Round, address string, f failure.Failure) {
	p.t.Helper()
	step, ok := r.Plan.Step(address)
	if !ok {
		p.t.Fatalf("no node %s", address)
	}
	must(p.t, p.journal.Record(journal.Attempt{ID: "1", Run: "before", Address: address, Key: step.Key, Number: 1,
		Failure: &f}))
}

func adapt(t *testing.T, r *round.Round) bool {
	t.Helper()
	changed, err := r.Adapt(t.Context())
	must(t, err)
	return changed
}

var broken = failure.Failure{Class: failure.Permanent, Rule: "exit", Stage: "run", Message: "it broke"}

// A fresh plan asks for no other graph: it must run first.
func TestAPlanOfWhichNothingIsStoredKeepsItsChoice(t *testing.T) {
	p := open(t, three)
	if r := p.plan(); adapt(t, r) || len(r.Missed) > 0 || len(p.choice.Dropped) > 0 {
		t.Errorf("choice %+v, missed %v", p.choice, r.Missed)
	}
}

// A member leaves its blocks if a node that it needs failed. The round tells the reason and the failure. The next graph
// has blocks of the other members alone.
func TestAMemberThatCannotBeMadeLeavesItsBlocks(t *testing.T) {
	p := open(t, three)
	p.fail(p.plan(), `task.made["c/one"]`, broken)
	r := p.plan()
	if !adapt(t, r) {
		t.Fatal("nothing changed")
	}
	gap := p.choice.Dropped[`benchmark.speed["c/one"]`]
	if len(p.choice.Dropped) != 1 || gap.Outcome != stats.BuildFailed || !strings.Contains(gap.Why, "it broke") {
		t.Errorf("dropped: %+v", p.choice.Dropped)
	}
	c := p.choice.Causes[`benchmark.speed["c/one"]`]
	if c.Address != `task.made["c/one"]` || c.Attempt.Run != "before" {
		t.Errorf("cause: %+v", c)
	}
	if len(r.Missed) == 0 {
		t.Error("the keys of the blocks that were looked up are not told")
	}
	next := p.plan()
	for _, b := range next.Groups[0].Trials {
		if !slices.Equal(slices.Sorted(slices.Values(b.Members)), []string{"base", "two"}) {
			t.Errorf("block %s has %q", b.At, b.Members)
		}
	}
	if adapt(t, next) {
		t.Errorf("the next round changes the choice again: %+v", p.choice)
	}
}

// If this machine failed a member, the next apply may not: the other members wait, since their blocks would have to be
// measured again with that member.
func TestOthersWaitForAMemberThatTheMachineFailed(t *testing.T) {
	p := open(t, three)
	f := broken
	f.Class = failure.Infra
	first := p.plan()
	p.fail(first, `task.made["c/one"]`, f)
	step, _ := first.Plan.Step(`task.made["c/one"]`)
	last, _ := p.journal.Last(step.Node.Address, step.Key)
	graph, drawing, err := tasks.Graph(t.Context(), p.facts, p.choice)
	must(t, err)
	plan, err := engine.NewPlan(t.Context(), graph, engine.PlanOptions{Store: p.facts.Store, Journal: p.journal,
		Pool: p.pool, GaveUp: map[cache.Key]journal.Attempt{step.Key: last}})
	must(t, err)
	if !adapt(t, &round.Round{Stored: &results.Stored{Drawing: drawing, Plan: plan}, Next: &p.choice}) {
		t.Fatal("nothing changed")
	}
	for candidate, want := range map[string]stats.Outcome{"c/one": stats.Infra, "c/two": stats.NotRun,
		"c/base": stats.NotRun} {
		if gap := p.choice.Dropped[`benchmark.speed["`+candidate+`"]`]; gap.Outcome != want {
			t.Errorf("%s: %+v, want %s", candidate, gap, want)
		}
	}
}

// Blocks are added while verdicts are open, and no more than the file allows.
func TestOpenVerdictsAskForMoreBlocks(t *testing.T) {
	p := open(t, three)
	r := p.plan()
	p.apply(r)
	r = p.plan()
	if !adapt(t, r) || p.choice.Blocks[r.Groups[0].Name] <= 4 || p.choice.Blocks[r.Groups[0].Name] > 8 {
		t.Fatalf("after four blocks: %v", p.choice.Blocks)
	}
	for i := 0; adapt(t, r) && i < 4; i++ {
		p.apply(p.plan())
		r = p.plan()
	}
	if n := r.Groups[0].Count(); n != 8 || adapt(t, r) {
		t.Errorf("%d blocks, and then %v", n, p.choice.Blocks)
	}
}

// A target that selects some of the members measures these alone. A target that selects the comparison measures all.
func TestATargetOfSomeMembersIsMeasuredAlone(t *testing.T) {
	p := open(t, three)
	r := p.plan()
	group := r.Groups[0].Name
	only := func(of ...string) func(string) bool {
		return func(address string) bool { return slices.Contains(of, address) }
	}
	alone := r.Targeted(only(`benchmark.speed["c/one"]`))
	if !maps.Equal(alone[group], map[string]bool{"one": true}) {
		t.Errorf("one member: %v", alone)
	}
	for _, target := range [][]string{
		{`benchmark.speed["c/one"]`, "compare.all"},
		{`benchmark.speed["c/one"]`, r.Groups[0].Trials[0].At.String()},
		{`benchmark.speed["c/base"]`, `benchmark.speed["c/one"]`, `benchmark.speed["c/two"]`},
		{`task.made["c/one"]`},
	} {
		if alone := r.Targeted(only(target...)); len(alone) > 0 {
			t.Errorf("%q: %v", target, alone)
		}
	}
	p.choice.Alone = alone
	next := p.plan()
	for _, b := range next.Groups[0].Trials {
		if !slices.Equal(b.Members, []string{"one"}) {
			t.Errorf("block %s has %q", b.At, b.Members)
		}
	}
	p.apply(next)
	if alone := p.plan().Targeted(only(`benchmark.speed["c/one"]`)); len(alone) > 0 {
		t.Errorf("what is measured is asked for again: %v", alone)
	}
}

// A failure whose rule asks for a fix puts the fix into the lock, once.
func TestAFixIsLearntOnce(t *testing.T) {
	p := open(t, three)
	f := failure.Failure{Class: failure.Fixable, Rule: "fix.key", Stage: "run", Message: "no key",
		Evidence: "no key at 3"}
	p.fail(p.plan(), `task.made["c/one"]`, f)
	learner := round.Learner{Lock: p.facts.Lock, Logs: t.TempDir()}
	plan := p.plan().Plan
	if news := learner.Learn(plan); len(news) != 1 || !strings.Contains(news[0], "no key at 3") {
		t.Errorf("news: %q", news)
	}
	learnt := p.facts.Lock.Fixes["key"]
	want := lockfile.Fix{Commit: "c", At: "task.made", Evidence: "no key at 3"}
	if !slices.Equal(learnt, []lockfile.Fix{want}) {
		t.Errorf("learnt: %+v", learnt)
	}
	if news := learner.Learn(plan); len(news) > 0 || len(p.facts.Lock.Fixes["key"]) != 1 {
		t.Errorf("again: %q", news)
	}
}

// A fix that was declared after a failure is learnt from the failure's log.
func TestAFixIsLearntFromTheLogOfARememberedFailure(t *testing.T) {
	p := open(t, three)
	p.fail(p.plan(), `task.made["c/two"]`, broken)
	logs := t.TempDir()
	must(t, os.WriteFile(filepath.Join(logs, "1.log"), []byte("start\nthere is no key here\nend\n"), 0o644))
	learner := round.Learner{Lock: p.facts.Lock, Logs: logs}
	relearn := func() []string {
		news, err := learner.Relearn(context.Background(), p.plan().Stored)
		must(t, err)
		return news
	}
	if news := relearn(); len(news) != 1 || !strings.Contains(news[0], "there is no key here") {
		t.Errorf("news: %q", news)
	}
	if news := relearn(); len(news) > 0 {
		t.Errorf("again: %q", news)
	}
}
