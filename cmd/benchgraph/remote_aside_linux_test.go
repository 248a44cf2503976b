package main

import (
	"os"
	"strings"
	"testing"
)

// try and noise measure on the cluster: a patch from anywhere, and a baseline against itself.
func TestTryAndNoiseOnACluster(t *testing.T) {
	t.Parallel()
	c := newClustered(t, strings.Replace(clusterFile, `commit "c" {}`, "", 1)+`
repo "app" { path = "app" }
commit "main" { repo = repo.app }
variant "base" { baseline = true }
benchmark "speed" {
  for_each = candidates
  data     = { "src/" = each.source }
  command  = "sample $(cat src/speed) 0.01"
  gpus { count = 1 }
  RATE
  design { samples = 4 }
}
compare "speed" { of = [benchmark.speed] }
`)
	c.commit("speed", "100\n")
	patch := c.patch("speed", "200\n")
	elsewhere := t.TempDir() + "/faster.diff"
	check(t, os.WriteFile(elsewhere, []byte(patch), 0o644))

	c.must(0, "try", elsewhere).says(t, "win ×")
	if n := len(c.jobs()); n != 4 {
		t.Errorf("%d jobs for four blocks of a try", n)
	}
	c.must(0, "try", elsewhere).says(t, "win ×", "Plan: 0 to run")
	c.write("app/speed", "50\n") // the work tree as it stands
	c.must(0, "try").says(t, "loss ×")
	if n := len(c.jobs()); n != 8 {
		t.Errorf("%d jobs for eight blocks of two tries", n)
	}
	c.git("checkout", "-q", ".")
	c.must(0, "noise", "speed").says(t, "speed")
	if n := len(c.jobs()); n != 12 {
		t.Errorf("%d jobs for twelve blocks", n)
	}
	// The plan of the file is what it was.
	c.must(0, "apply").says(t, "Apply: ")
	c.must(0, "plan").says(t, "Plan: 0 to run")
}
