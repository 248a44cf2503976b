package campaign_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/executortest"
	"github.com/benchgraph/benchgraph/stats"
)

// machine is an executor whose program ./prog prints the test's text for each candidate.
type machine struct {
	*executortest.Fake
	mu   sync.Mutex
	says map[string]func(run int) executortest.FakeRun // by member
	runs map[string]int
}

func newMachine(says map[string]func(run int) executortest.FakeRun) *machine {
	m := &machine{Fake: executortest.NewFake(), says: says, runs: map[string]int{}}
	m.On("./prog", func(cmd executor.Command) executortest.FakeRun {
		m.mu.Lock()
		defer m.mu.Unlock()
		who := filepath.Base(cmd.Dir) // each member of a block has a directory of that name
		m.runs[who]++
		return m.says[who](m.runs[who])
	})
	return m
}

func (m *machine) ran(who string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runs[who]
}

// speed returns the output of a run with this speed.
func speed(items float64) func(int) executortest.FakeRun {
	return func(run int) executortest.FakeRun {
		return executortest.FakeRun{Stdout: fmt.Sprintf("work done: %f items/s\n", items*(1+0.001*float64(run%3)))}
	}
}

func breaks(text string, code int) func(int) executortest.FakeRun {
	return func(int) executortest.FakeRun {
		return executortest.FakeRun{Stderr: text + "\n", Status: executor.Status{Code: code}}
	}
}

// threeOnAMachine is a commit in three variants, measured by a machine.
const threeOnAMachine = `
commit "c" {}
variant "base" { baseline = true }
variant "one" {}
variant "two" {}
benchmark "speed" {
  for_each = candidates
  command  = "./prog"
  design { samples = 4 }
  metrics {
    metric "items" {
      match  = "work done: ([0-9.]+) items/s"
      unit   = "items/s"
      better = "higher"
    }
  }
}
compare "all" { of = [benchmark.speed] }
failure "flaky" {
  match = "flaky"
  class = "transient"
  retry {
    attempts = 2
    backoff  = "1ms"
  }
}
`

func onMachine(t *testing.T, text string, says map[string]func(int) executortest.FakeRun) (*story, *machine) {
	t.Helper()
	s := tell(t, map[string]string{"benchmarks.hcl": text})
	m := newMachine(says)
	s.host = m
	return s, m
}

// While the pilot's output of the baseline cannot be read, there is no other block: its numbers could never count. Once
// it can be read, the others are measured, and the pilot is not measured again.
func TestACorrectedMetricMeasuresNothingAgain(t *testing.T) {
	t.Parallel()
	wrong := strings.Replace(threeOnAMachine, "work done:", "work was done:", 1)
	s, m := onMachine(t, wrong, map[string]func(int) executortest.FakeRun{"base": speed(1000), "one": speed(1100),
		"two": speed(900)})
	applied := s.apply()
	for range 2 {
		_, more := applied.Plan.Step(`trial.speed["c#2"]`)
		step, _ := applied.Plan.Step(`benchmark.speed["c/base"]`)
		if more || step.Failure == nil || step.Failure.Failure.Rule != "metric_missing" || m.ran("base") != 1 ||
			m.ran("one") != 1 {
			t.Errorf("%s (%s) after %d runs", step.Action, step.Reason, m.ran("base"))
		}
		s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.NoBaseline, "c/two": stats.NoBaseline})
		applied = s.apply()
	}
	s.write("benchmarks.hcl", threeOnAMachine)
	if applied = s.apply(); applied.Result.Failed > 0 {
		t.Errorf("%+v", applied.Result)
	}
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.Win, "c/two": stats.Loss})
	if n := m.ran("base"); n != 4 {
		t.Errorf("the baseline was measured %d times", n)
	}
	if ran := s.ran(); slices.Contains(ran, `trial.speed["c#1"]`) {
		t.Errorf("the pilot was run again: %q", ran)
	}
}

// An unreadable output may be a mishap of its run: -retry-failed measures the pilot again, and then the other blocks.
func TestAnUnreadablePilotIsMeasuredAgain(t *testing.T) {
	t.Parallel()
	says := map[string]func(int) executortest.FakeRun{"base": func(run int) executortest.FakeRun {
		if run == 1 {
			return executortest.FakeRun{Stdout: "no numbers today\n"}
		}
		return speed(1000)(run)
	}, "one": speed(1100), "two": speed(900)}
	s, m := onMachine(t, threeOnAMachine, says)
	s.apply()
	if n := m.ran("base"); n != 1 {
		t.Fatalf("the baseline was measured %d times", n)
	}
	s.retryFailed()
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.Win, "c/two": stats.Loss})
	if n := m.ran("base"); n != 10 { // the pilot twice, and more blocks than usual, since one sample was lost
		t.Errorf("the baseline was measured %d times", n)
	}
}

// retryFailed applies with -retry-failed.
func (s *story) retryFailed() {
	s.t.Helper()
	s.open(func(ctx context.Context, p *campaign.Project) {
		_, err := p.Apply(ctx, campaign.ApplyOptions{RunID: "retry",
			PlanOptions: campaign.PlanOptions{RetryFailed: true}})
		must(s.t, err)
	})
}

func TestFailedNodesAreTriedAgainOnRequest(t *testing.T) {
	t.Parallel()
	says := map[string]func(int) executortest.FakeRun{"base": speed(1000), "one": breaks("broken", 1),
		"two": speed(900)}
	oneLook := strings.Replace(threeOnAMachine, "design { samples = 4 }", "design { looks = [4] }", 1)
	s, m := onMachine(t, oneLook, says)
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.Failed, "c/two": stats.Loss})
	if m.ran("one") != 1 {
		t.Errorf("after the pilot it was run %d times", m.ran("one")-1)
	}
	if s.apply(); len(s.ran()) > 0 {
		t.Errorf("the second run ran %q", s.ran())
	}
	says["one"] = speed(1100)
	s.retryFailed()
	// A candidate that was tried again until it passed has no win.
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.Inconclusive, "c/two": stats.Loss})
	for _, row := range s.ledger() {
		if a := row.Attempts; row.Candidate == "c/one" && (a.Replaced != 4 || a.Lost("one") != 1 ||
			!strings.Contains(row.Reason, "survivorship")) {
			t.Errorf("%+v: %s", a, row.Reason)
		}
	}
}

// If every candidate has failed in the pilot, the baseline is not measured further.
func TestABaselineIsNotMeasuredWhenEachCandidateFailed(t *testing.T) {
	t.Parallel()
	says := map[string]func(int) executortest.FakeRun{"base": speed(1000), "one": breaks("broken", 1),
		"two": breaks("broken", 1)}
	s, m := onMachine(t, strings.Replace(threeOnAMachine, "design { samples = 4 }", "design { looks = [4] }", 1), says)
	applied := s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.Failed, "c/two": stats.Failed})
	if n := m.ran("base"); n != 1 || applied.Result.Failed != 2 {
		t.Errorf("the baseline was measured %d times: %+v", n, applied.Result)
	}
	if s.apply(); len(s.ran()) > 0 {
		t.Errorf("the second run ran %q", s.ran())
	}
	says["one"] = speed(1100)
	s.retryFailed()
	if n := m.ran("base"); n != 5 {
		t.Errorf("the baseline was measured %d times", n)
	}
	for _, row := range s.ledger() {
		if row.Candidate == "c/one" && row.Blocks != 4 {
			t.Errorf("%+v", row)
		}
	}
}

func TestAMemberThatFailsInALaterBlockHasFailed(t *testing.T) {
	t.Parallel()
	says := map[string]func(int) executortest.FakeRun{"base": speed(1000), "two": speed(900),
		"one": func(run int) executortest.FakeRun {
			if run == 3 {
				return executortest.FakeRun{Stderr: "broken now\n", Status: executor.Status{Code: 1}}
			}
			return speed(1100)(run)
		}}
	s, _ := onMachine(t, threeOnAMachine, says)
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.Failed, "c/two": stats.Loss})
	for _, row := range s.ledger() {
		if row.Candidate == "c/two" && row.Primary && row.Blocks != 4 {
			t.Errorf("c/two was judged over %d blocks: the failure of c/one cost it some", row.Blocks)
		}
	}
	if s.apply(); len(s.ran()) > 0 {
		t.Errorf("the second run ran %q", s.ran())
	}
}

func TestABaselineThatFailsInALaterBlock(t *testing.T) {
	t.Parallel()
	says := map[string]func(int) executortest.FakeRun{"one": speed(1100), "two": speed(900),
		"base": func(run int) executortest.FakeRun {
			if run == 3 {
				return executortest.FakeRun{Stderr: "broken now\n", Status: executor.Status{Code: 1}}
			}
			return speed(1000)(run)
		}}
	s, _ := onMachine(t, threeOnAMachine, says)
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.NoBaseline, "c/two": stats.NoBaseline})
}

func TestAFlakyCandidateVoidsNoOther(t *testing.T) {
	t.Parallel()
	says := map[string]func(int) executortest.FakeRun{"base": speed(1000), "one": breaks("flaky", 1), "two": speed(900)}
	s, _ := onMachine(t, threeOnAMachine, says)
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.Failed, "c/two": stats.Loss})
}

func TestABaselineThatIsAlwaysFlaky(t *testing.T) {
	t.Parallel()
	says := map[string]func(int) executortest.FakeRun{"base": breaks("flaky", 1), "one": speed(1100), "two": speed(900)}
	s, _ := onMachine(t, threeOnAMachine, says)
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.NoBaseline, "c/two": stats.NoBaseline})
}

func TestASkippedBaselineIsNoBaseline(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		keys := `toset(["c/base"])`
		want := map[string]stats.Outcome{"c/one": stats.NoBaseline, "c/two": stats.NoBaseline}
		if whole {
			keys = "commit"
			want = map[string]stats.Outcome{"c/one": stats.Skipped, "c/two": stats.Skipped}
		}
		s, m := onMachine(t, threeOnAMachine+`
skip "why" {
  for_each = `+keys+`
  reason   = "not today"
}
`, map[string]func(int) executortest.FakeRun{"base": speed(1), "one": speed(1), "two": speed(1)})
		s.apply()
		s.wantOutcomes(want)
		if m.ran("one")+m.ran("two")+m.ran("base") > 0 {
			t.Errorf("something was measured: %v", m.runs)
		}
	}
}

func TestABenchmarkWithoutCandidates(t *testing.T) {
	t.Parallel()
	s, m := onMachine(t, strings.Replace(threeOnAMachine, "[benchmark.speed]", "[benchmark.alone]", 1)+`
benchmark "alone" {
  command = "./prog"
  design { samples = 3 }
  metrics {
    metric "items" {
      match = "work done: ([0-9.]+) items/s"
      unit  = "items/s"
    }
  }
}
report "r" { of = [compare.all] }
`, map[string]func(int) executortest.FakeRun{"run": speed(1000), "base": speed(1), "one": speed(1), "two": speed(1)})
	if applied := s.apply(); applied.Result.Failed > 0 {
		t.Errorf("%+v", applied.Result)
	}
	if m.ran("run") != 3 {
		t.Errorf("%d runs", m.ran("run"))
	}
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.NotRun, "c/two": stats.NotRun})
	s.open(func(ctx context.Context, p *campaign.Project) {
		plan, err := p.Plan(ctx, campaign.PlanOptions{})
		must(t, err)
		found, err := p.Stored(plan).Findings(ctx)
		must(t, err)
		if len(found) != 1 || len(found[0].Measurements) != 3 {
			t.Errorf("%+v", found)
		}
	})
}

func TestTwoBenchmarksInOneCompareAndSomeInstances(t *testing.T) {
	t.Parallel()
	second := strings.Replace(strings.Replace(threeOnAMachine[strings.Index(threeOnAMachine,
		"benchmark"):strings.Index(threeOnAMachine, "compare")], `"speed"`, `"again"`, 1), "./prog", "./prog --again",
		1)
	text := strings.Replace(threeOnAMachine, "[benchmark.speed]", "[benchmark.speed, benchmark.again]", 1) + second + `
compare "some" { of = [benchmark.speed["c/base"], benchmark.speed["c/one"]] }
`
	s, _ := onMachine(t, text, map[string]func(int) executortest.FakeRun{"base": speed(1000), "one": speed(1100),
		"two": speed(900)})
	s.apply()
	var got []string
	for _, row := range s.ledger() {
		if row.Primary {
			got = append(got, fmt.Sprint(row.Compare, " ", row.Benchmark, " ", row.Candidate, " ", row.Outcome))
		}
	}
	slices.Sort(got)
	want := []string{"all again c/one win", "all again c/two loss", "all speed c/one win", "all speed c/two loss",
		"some speed c/one win"}
	// The ledger has candidates that "some" does not measure, too.
	if !slices.Contains(got, "some  c/two not_run") && !slices.Contains(got, "some speed c/two not_run") {
		t.Errorf("c/two has no outcome in some: %q", got)
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("%q is not among %q", w, got)
		}
	}
}

func TestAPerfFixMustBeTheSameForAll(t *testing.T) {
	t.Parallel()
	text := threeOnAMachine + `
fix "fast" {
  when   = each.variant.name == "one"
  env    = { FAST = "1" }
  effect = "perf"
}
`
	s, _ := onMachine(t, text, map[string]func(int) executortest.FakeRun{"base": speed(1000), "one": speed(1100),
		"two": speed(900)})
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.NotComparable, "c/two": stats.Loss})
	s.allow = []string{"fix fast"}
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.Win, "c/two": stats.Loss})
	for _, row := range s.ledger() {
		if labelled := slices.ContainsFunc(row.Caveats, func(c stats.Caveat) bool {
			return strings.Contains(c.Text, "fix fast") && strings.Contains(c.Text, "differ")
		}); row.Candidate == "c/one" && !labelled {
			t.Errorf("what was let through is not labelled: %q", row.Caveats)
		}
	}
}

func TestVariantsThatSayLessAreNotFaster(t *testing.T) {
	t.Parallel()
	text := strings.Replace(threeOnAMachine, "  metrics {\n",
		"  metrics {\n    primary = \"items\"\n    metric \"total_output_tokens\" { match = \"tokens: ([0-9]+)\" }\n",
		1)
	tokens := func(items float64, n int) func(int) executortest.FakeRun {
		return func(run int) executortest.FakeRun {
			r := speed(items)(run)
			r.Stdout += fmt.Sprintf("tokens: %d\n", n)
			return r
		}
	}
	says := map[string]func(int) executortest.FakeRun{"base": tokens(1000, 10000), "one": tokens(1100, 9900),
		"two": tokens(1100, 9990)}
	s, _ := onMachine(t, text, says)
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.NotComparable, "c/two": stats.Win})
	s.write("benchmarks.hcl", strings.Replace(text, "  metrics {\n", "  metrics {\n    token_tolerance = 0.05\n", 1))
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.Win, "c/two": stats.Win})
}

func TestTheFirstFailureEndsAFailFast(t *testing.T) {
	t.Parallel()
	s := tell(t, map[string]string{"benchmarks.hcl": `
task "breaks" { command = "exit 1" }
task "fine" { command = "true" }
`})
	apply := func(fast bool) *campaign.Applied {
		var applied *campaign.Applied
		s.open(func(ctx context.Context, p *campaign.Project) {
			var err error
			applied, err = p.Apply(ctx, campaign.ApplyOptions{RunID: "x", FailFast: fast, Parallelism: 1})
			must(t, err)
		})
		return applied
	}
	if r := apply(true).Result; r.Failed != 1 || r.Done != 0 || r.NotRun != 1 {
		t.Errorf("failing fast: %+v", r)
	}
	if r := apply(false).Result; r.Failed != 1 || r.Done != 1 || r.NotRun != 0 {
		t.Errorf("going on: %+v", r)
	}
	// Each node is counted once, even if the failure changes the number of blocks.
	s.write("benchmarks.hcl", `
commit "c" {}
variant "base" { baseline = true }
variant "one" {}
variant "two" {}
task "made" {
  for_each = candidates
  artefact = true
  command  = each.key == "c/one" ? "exit 3" : "echo ${each.key} >$OUT/x"
}
benchmark "b" {
  for_each = candidates
  data     = { x = task.made[each.key] }
  command  = "echo speed: 1"
  metrics {
    metric "speed" { match = "speed: ([0-9])" }
  }
}
compare "c" { of = [benchmark.b] }
`)
	applied := apply(true)
	if r := applied.Result; r.Failed != 1 || r.Blocked != 1 || r.NotRun == 0 ||
		r.Done+r.Cached+r.Failed+r.Blocked+r.Skipped+r.NotRun != len(applied.Plan.Steps) {
		t.Errorf("failing fast: %+v of %d nodes", r, len(applied.Plan.Steps))
	}
}

// A candidate that cannot be made has not failed if the baseline cannot be made, either.
func TestWithoutABaselineNoCandidateFailedToBuild(t *testing.T) {
	t.Parallel()
	s := tell(t, map[string]string{"benchmarks.hcl": `
variable "breaks" { default = "^c/(base|one)$" }
commit "c" {}
variant "base" { baseline = true }
variant "one" {}
variant "two" {}
task "made" {
  for_each = candidates
  artefact = true
  command  = can(regex(var.breaks, each.key)) ? "exit 1" : "echo ${each.key} >$OUT/x"
}
benchmark "b" {
  for_each = candidates
  data     = { x = task.made[each.key] }
  command  = "echo speed: 1"
  metrics {
    metric "speed" { match = "speed: ([0-9])" }
  }
}
compare "c" { of = [benchmark.b] }
`})
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.NoBaseline, "c/two": stats.NoBaseline})
	s.write("benchmarks.hcl", strings.Replace(s.read("benchmarks.hcl"), "(base|one)", "one", 1))
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.BuildFailed, "c/two": stats.Tie})
}

func TestAnInterruptedBlockIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	stop := func() {}
	says := map[string]func(int) executortest.FakeRun{"base": speed(1000), "two": speed(900),
		"one": func(run int) executortest.FakeRun {
			if run == 2 {
				stop()
			}
			return speed(1100)(run)
		}}
	s, m := onMachine(t, threeOnAMachine, says)
	s.open(func(ctx context.Context, p *campaign.Project) {
		ctx, stop = context.WithCancel(ctx)
		_, err := p.Apply(ctx, campaign.ApplyOptions{RunID: "x"})
		if err == nil {
			t.Error("the interruption is no error")
		}
	})
	for who, outcome := range s.outcomes() {
		if outcome != stats.NotRun && outcome != stats.Inconclusive {
			t.Errorf("%s: %s after an interruption", who, outcome)
		}
	}
	before := m.ran("base")
	s.apply()
	s.wantOutcomes(map[string]stats.Outcome{"c/one": stats.Win, "c/two": stats.Loss})
	if again := m.ran("base") - before; again < 1 || again > 4 {
		t.Errorf("%d further runs of the baseline", again)
	}
}
