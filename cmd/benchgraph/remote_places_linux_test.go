package main

import (
	"os"
	"strings"
	"testing"
)

// In one apply, each benchmark is measured where it asks to be, or where the devices are that it needs.
const placesFile = clusterFile + `
executor "slurm" "few" {
  machine  = machine.h200
  program  = "PROGRAM"
  work_dir = "WORK"
  cpus     = 1
  max_jobs = 1
}
variant "base" { baseline = true }
variant "fast" {}
task "built" {
  for_each = candidates
  command  = "echo ${each.key} > $OUT/made"
  artefact = true
}
locals {
  command = <<-EOT
    sample $(case $(cat in) in *fast) echo 200;; *) echo 100;; esac) 0.01
  EOT
}
benchmark "devices" {
  for_each = candidates
  data     = { "in" = task.built[each.key] }
  command  = local.command
  gpus { count = 2 }
  RATE
  design { samples = 4 }
}
benchmark "plain" {
  for_each = candidates
  data     = { "in" = task.built[each.key] }
  command  = local.command
  RATE
  design { samples = 4 }
}
benchmark "sent" {
  for_each = candidates
  executor = executor.slurm.few
  env      = { OTHER = "work" }
  data     = { "in" = task.built[each.key] }
  command  = local.command
  RATE
  design { samples = 4 }
}
compare "all" { of = [benchmark.devices, benchmark.plain, benchmark.sent] }
`

func TestBenchmarksHaveTheirPlaces(t *testing.T) {
	t.Parallel()
	c := newClustered(t, placesFile)
	c.must(0, "plan").says(t, "4 of these nodes run as jobs of executor gpu, at most 4 at once, "+
		"4 as jobs of executor few, at most 1 at once; the others here")
	c.must(0, "apply").says(t, "win (devices rate)", "win (plain rate)", "win (sent rate)", "Apply: 21 done")
	if n := len(c.jobs()); n != 8 {
		t.Errorf("%d jobs for eight blocks on the cluster", n)
	}
	type trial struct {
		Record struct {
			Class struct {
				GPUs []struct{ Name string } `json:"gpus"`
			} `json:"hardware_class"`
		} `json:"record"`
	}
	for benchmark, gpus := range map[string]int{"devices": 1, "plain": 0, "sent": 0} {
		var measured trial
		c.json(&measured, "show", "-json", `trial.`+benchmark+`["c#2"]`)
		if got := measured.Record.Class.GPUs; len(got) != gpus {
			t.Errorf("%s was measured on %v", benchmark, got)
		}
		log := c.must(0, "logs", `trial.`+benchmark+`["c#2"]`).stdout
		if job := strings.Contains(log, " is submitted"); job == (benchmark == "plain") {
			t.Errorf("%s: %s", benchmark, log)
		}
	}
	c.must(0, "plan").says(t, "Plan: 0 to run")
	c.must(0, "apply").says(t, "Apply: 0 done, 21 cached")
}

// The apply names jobs of nodes that are not in the file any more: nobody else would end them.
func TestJobsThatTheFileNoLongerHas(t *testing.T) {
	t.Parallel()
	c := newClustered(t, measuredFile)
	check(t, os.WriteFile(c.hold, nil, 0o644))
	c.must(0, "apply", "-detach").says(t, "1 job goes on")
	c.jobIs("RUNNING")
	text, err := os.ReadFile(c.path("benchmarks.hcl"))
	check(t, err)
	c.write("benchmarks.hcl", strings.Replace(string(text), "count = 2", "count = 1", 1))
	c.must(0, "apply", "-detach").says(t, " of an earlier apply goes on, and this apply runs no such node. "+
		"To cancel the job: scancel ")
	check(t, os.Remove(c.hold))
	c.must(0, "apply").says(t, "win")
}
