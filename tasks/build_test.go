package tasks

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/stats"
)

// factsOf returns the facts of a project with a single file, on a machine of an own class.
func factsOf(t *testing.T, text string) *Facts {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "benchmarks.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	lock := &lockfile.Lock{}
	spec, _, diags := hclspec.Load(hclspec.Options{Dir: dir, Lock: lock})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	pool, err := device.NewPool(device.Options{CPUs: 2, Cores: device.Cores, Memory: 8 << 30, GPUs: gpu.These(nil)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	journal, err := journal.Open(filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { journal.Close() })
	f := NewFacts(Config{StateDir: dir, Journal: journal, Stat: cache.OpenStatCache(filepath.Join(dir, "stat")),
		Pool: pool, Progress: io.Discard, Sandbox: "none"}, spec, lock)
	f.Hardware = "a machine of its own"
	return f
}

// drawn returns a graph as text, with one line per node: address, reason of an exclusion, and dependencies.
func drawn(t *testing.T, f *Facts, c Choice) []string {
	t.Helper()
	graph, _, err := Graph(t.Context(), f, c)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, n := range graph.Nodes() {
		line := n.Address + " " + n.Exclude.Reason
		for _, list := range [][]*engine.Node{n.Needs, n.Order, n.After} {
			for _, dep := range list {
				line += " " + dep.Address
			}
		}
		lines = append(lines, line)
	}
	return lines
}

const threeVariants = `
commit "c" {}
variant "base" { baseline = true }
variant "one" {}
variant "two" {}
wheel "prog" {
  for_each = candidates
  build { command = "echo ${each.key} > $OUT/prog" }
  outputs = ["prog"]
}
benchmark "speed" {
  for_each = candidates
  data     = { "prog" = wheel.prog[each.key] }
  command  = "cat prog"
  design { samples = 3 }
  metrics {
    metric "items" {
      match  = "([0-9.]+) items/s"
      unit   = "items/s"
      better = "higher"
    }
  }
}
compare "all" { of = [benchmark.speed] }
`

func TestTheSameFactsAndChoiceMakeTheSameGraph(t *testing.T) {
	f, c := factsOf(t, threeVariants), NewChoice()
	first := drawn(t, f, c)
	const group = `trial.speed["c"]`
	dropped := Absence{Outcome: stats.BuildFailed, Why: "it does not build"}
	other := NewChoice()
	other.Blocks[group], other.Dropped[`benchmark.speed["c/two"]`] = 5, dropped
	changed := drawn(t, f, other)
	if again := drawn(t, f, c); !slices.Equal(again, first) {
		t.Errorf("%s\nfirst\n%s", strings.Join(again, "\n"), strings.Join(first, "\n"))
	}
	if again := drawn(t, f, other); !slices.Equal(again, changed) {
		t.Errorf("%s\nfirst\n%s", strings.Join(again, "\n"), strings.Join(changed, "\n"))
	}
	if len(c.Blocks)+len(c.Dropped)+len(c.Causes)+len(c.Issues)+len(c.Misfits) > 0 {
		t.Errorf("the choice became %+v", c)
	}
	if !maps.Equal(other.Blocks, map[string]int{group: 5}) ||
		!maps.Equal(other.Dropped, map[string]Absence{`benchmark.speed["c/two"]`: dropped}) {
		t.Errorf("the choice became %+v", other)
	}
	trials := func(lines []string) (n int) {
		for _, l := range lines {
			if strings.HasPrefix(l, "trial.") {
				n++
			}
		}
		return n
	}
	if trials(first) != 3 || trials(changed) != 5 {
		t.Errorf("%d and %d blocks", trials(first), trials(changed))
	}
	with := func(lines []string) bool {
		return slices.ContainsFunc(lines, func(l string) bool {
			return strings.HasPrefix(l, "trial.") && strings.Contains(l, "c/two")
		})
	}
	if !with(first) || with(changed) {
		t.Errorf("blocks have the member that was dropped: %v; before: %v", with(changed), with(first))
	}
}

// A worker on another machine makes the same graph.
func TestAnEncodedChoiceMakesTheSameGraph(t *testing.T) {
	f, c := factsOf(t, threeVariants), NewChoice()
	c.Alone = map[string]map[string]bool{`trial.speed["c"]`: {"one": true}}
	c.Dropped[`benchmark.speed["c/two"]`] = Absence{Outcome: stats.Failed, Why: "it fails"}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"blocks":{},"alone":{"trial.speed[\"c\"]":{"one":true}},"dropped":{"benchmark.speed[\"c/two\"]":` +
		`{"Outcome":"failed","Why":"it fails"}},"issues":{},"misfits":{}}`
	if string(text) != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	var decoded Choice
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	here, there := drawn(t, f, c), drawn(t, factsOf(t, threeVariants), decoded)
	if !slices.Equal(here, there) {
		t.Errorf("%s\nhere\n%s", strings.Join(there, "\n"), strings.Join(here, "\n"))
	}
}

// A patch file is removed after the evaluation, before the graph is made: only its candidates are left out.
func TestRemovedPatchExcludesItsCandidate(t *testing.T) {
	f := factsOf(t, threeVariants)
	for i := range f.Spec.Candidates {
		if c := &f.Spec.Candidates[i]; !c.Baseline {
			c.Patch = "gone.diff"
		}
	}
	for i := range f.Spec.Variants {
		f.Spec.Variants[i].Optional = f.Spec.Variants[i].Name == "one"
	}
	_, d, err := Graph(t.Context(), f, NewChoice())
	want := map[string]Absence{
		"c/one": {stats.NoPatch, "no patch: there is no file gone.diff"},
		"c/two": {stats.NotRun, "no patch: there is no file gone.diff"},
	}
	if err != nil || !maps.Equal(d.Excluded, want) {
		t.Errorf("%v, %v", d.Excluded, err)
	}
}

// The seed of the design draws which blocks have the check.
func TestChecksAreDrawnByTheSeed(t *testing.T) {
	draws := map[string]bool{}
	for seed := range 20 {
		f := factsOf(t, strings.Replace(threeVariants, "design { samples = 3 }",
			fmt.Sprintf("check { command = \"true\" }\n  design {\n    samples = 16\n    seed = %d\n  }", seed), 1))
		g, _, err := Graph(t.Context(), f, NewChoice())
		if err != nil {
			t.Fatal(err)
		}
		var drawn []int
		for _, n := range g.Nodes() {
			if trial, ok := n.Task.(*trialTask); ok && trial.checked {
				drawn = append(drawn, trial.block)
			}
		}
		if len(drawn) != 4 { // of 1, 2 to 4, 5 to 8, 9 to 16
			t.Fatal(drawn)
		}
		draws[fmt.Sprint(drawn)] = true
	}
	if len(draws) < 5 {
		t.Error(draws)
	}
}
