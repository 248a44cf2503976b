package campaign_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/executortest"
)

// fullStore has a result for every key.
type fullStore struct{}

func (fullStore) Get(_ context.Context, key cache.Key, _ bool) (cache.Entry, error) {
	return cache.Entry{Meta: cache.Meta{Key: key, Digest: "d"}, Dir: "/nowhere"}, nil
}
func (fullStore) Find(context.Context, cache.Key) (cache.Entry, error) {
	return cache.Entry{}, cache.ErrMiss
}
func (fullStore) Put(context.Context, cache.Draft) (cache.Entry, error) {
	return cache.Entry{}, cache.ErrMiss
}
func (fullStore) List(context.Context, func(string) bool, func(cache.Meta) error) error { return nil }
func (fullStore) Scratch() (string, error)                                              { return "", cache.ErrMiss }
func (fullStore) Outline(m *cache.Meta) cache.Outline {
	return cache.Outline{Key: m.Key}
}
func (fullStore) Absent(_, _ []cache.Key) bool     { return false }
func (fullStore) Intact(*cache.Outline, bool) bool { return true }

func BenchmarkGraph10k(b *testing.B)  { benchmarkGraph(b, 10_000) }
func BenchmarkGraph100k(b *testing.B) { benchmarkGraph(b, 100_000) }

// benchmarkGraph reads a project of n tasks, each with a file of its own, and plans it when all results are stored.
func benchmarkGraph(b *testing.B, n int) {
	s := tell(b, map[string]string{"benchmarks.hcl": `
locals { rows = csvdecode(file("tasks.csv")) }
task "t" {
  for_each = { for r in local.rows : r.name => r }
  inputs   = ["in/${each.key}.txt"]
  command  = "sort in/${each.key}.txt > $OUT/sorted"
  outputs  = ["sorted"]
}
task "all" {
  needs   = [task.t]
  command = "true"
}
`})
	s.store = fullStore{}
	var rows strings.Builder
	rows.WriteString("name\n")
	for i := range n {
		fmt.Fprintf(&rows, "t%d\n", i)
		s.write(fmt.Sprintf("in/t%d.txt", i), "b\na\n")
	}
	s.write("tasks.csv", rows.String())
	s.planned(n + 1) // once, so that the files' digests are known
	for b.Loop() {
		s.planned(n + 1)
	}
}

// planned plans in a new process, and makes sure that all results are stored.
func (s *story) planned(atLeast int) {
	s.t.Helper()
	diags := s.open(func(ctx context.Context, p *campaign.Project) {
		plan, err := p.Plan(ctx, campaign.PlanOptions{})
		must(s.t, err)
		if cached := plan.Counts()[engine.Cached]; cached < atLeast || cached != len(plan.Steps) {
			s.t.Fatalf("%d of %d steps are cached", cached, len(plan.Steps))
		}
	})
	if diags.HasErrors() {
		s.t.Fatal(diags)
	}
}

// BenchmarkPlanCampaign plans a campaign that has been measured: 30 commits in three variants, 7 to 11 blocks each.
func BenchmarkPlanCampaign(b *testing.B) {
	s := tell(b, map[string]string{"benchmarks.hcl": `
locals { rows = csvdecode(file("commits.csv")) }
commit "c" {
  for_each = { for r in local.rows : r.name => r }
  params   = { speed = each.value.speed }
}
variant "baseline" { baseline = true }
variant "human" {}
variant "agent" {}
benchmark "speed" {
  for_each = candidates
  command  = "./prog"
  env      = { SPEED = each.commit.params.speed }
  design {
    samples = 7
    max     = 11
  }
  metrics {
    primary = "items"
    metric "items" {
      match  = "work done: ([0-9.]+) items/s"
      unit   = "items/s"
      better = "higher"
    }
    metric "lag" {
      match = "lag: ([0-9.]+) ms"
      unit  = "ms"
    }
  }
}
compare "all" { of = [benchmark.speed] }
report "all" { of = [compare.all] }
`})
	var rows strings.Builder
	rows.WriteString("name,speed\n")
	for i := range 30 {
		fmt.Fprintf(&rows, "c%d,%d\n", i, 1000+i)
	}
	s.write("commits.csv", rows.String())
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	s.host = executortest.NewFake().On("./prog", func(cmd executor.Command) executortest.FakeRun {
		speed := 0.0
		for _, v := range cmd.Env {
			fmt.Sscanf(v, "SPEED=%f", &speed)
		}
		mu.Lock()
		defer mu.Unlock()
		speed *= map[string]float64{"baseline": 1, "human": 1.03, "agent": 1.01}[filepath.Base(cmd.Dir)]
		speed *= 1 + 0.01*random.NormFloat64()
		return executortest.FakeRun{Stdout: strings.Repeat("[INFO] a line of a log that says nothing\n", 200) +
			fmt.Sprintf("work done: %f items/s\nlag: %f ms\n", speed, 1e6/speed)}
	})
	if applied := s.apply(); applied.Result.Failed > 0 || applied.Result.Done < 30*7 {
		b.Fatalf("%+v", applied.Result)
	}
	for b.Loop() {
		s.planned(30 * 7)
	}
}

// BenchmarkPlanImages plans a measured campaign of 400 candidates, each with an image: with its memo and, for
// comparison, without. Both ask the container engine once.
func BenchmarkPlanImages(b *testing.B) {
	s := picture(b, map[string]string{"benchmarks.hcl": `
commit "c" { for_each = toset([for i in range(200) : "c${i}"]) }
variant "base" { baseline = true }
variant "other" {}
image "WORD" {
  for_each = candidates
  from     = "BASE"
  fixes    = [fix.it]
}
fix "it" { run = ["echo WORD > /x"] }
benchmark "speed" {
  for_each = candidates
  command  = "echo speed 5"
  design { samples = 1 }
  metrics {
    metric "speed" { match = "speed ([0-9]+)" }
  }
}
compare "all" { of = [benchmark.speed] }
`})
	s.apply()
	s.recalled(true)
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			s.planned(1000)
		}
	})
	b.Run("recalled", func(b *testing.B) {
		for b.Loop() {
			if _, recalled := s.recalled(true); !recalled {
				b.Fatal("the plan was not recalled")
			}
		}
	})
}
