package main

import (
	"os"
	"strings"
	"testing"
)

// A result that another key has made goes to nodes, and comes from them, under the key of the plan.
func TestResultsThatCameOutTheSameOnACluster(t *testing.T) {
	t.Parallel()
	c := newClustered(t, strings.Replace(clusterFile, `commit "c" {}`, "", 1)+`
repo "app" { path = "app" }
commit "main" { repo = repo.app }
variant "base" { baseline = true }
variant "fast" { patch = "fast.diff" }
task "built" {
  for_each = candidates
  data     = { "src/" = each.source }
  command  = "cp src/speed $OUT/made"
  artefact = true
}
benchmark "speed" {
  for_each = candidates
  data     = { "in" = task.built[each.key] }
  command  = "sample $(cat in) 0.01"
  gpus { count = 1 }
  RATE
  design { samples = 4 }
}
compare "speed" { of = [benchmark.speed] }
`)
	c.commit("speed", "100\n")
	patch := c.patch("speed", "200\n")
	c.write("fast.diff", patch)
	c.must(0, "apply").says(t, "win")

	c.write("fast.diff", "Subject: the same change\n\n"+patch)
	c.must(0, "apply").says(t, "win")
	if n := len(c.jobs()); n != 4 {
		t.Errorf("%d jobs for four blocks", n)
	}
	c.must(0, "apply", `-replace=trial.speed["main#2"]`).says(t, `done     trial.speed["main#2"]`)

	// The nodes have the blocks in stores of their own, under other keys.
	c.forget(t)
	text, err := os.ReadFile(c.path("benchmarks.hcl"))
	check(t, err)
	c.write("benchmarks.hcl", strings.Replace(string(text), "cp src/speed $OUT/made", "cat src/speed >$OUT/made", 1))
	c.must(0, "apply").says(t, "win")
	c.must(0, "plan").says(t, "Plan: 0 to run")
}
