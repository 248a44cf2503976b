package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/remote/againtest"
)

// again returns the project as a site whose blocks are measured again. Jobs leave their files in the given directories.
func (w *world) again(shared string, dirs ...string) *againtest.Site {
	files := againtest.Files{Hold: filepath.Join(shared, "hold"), Bad: filepath.Join(shared, "bad"),
		Ran: filepath.Join(shared, "ran")}
	text, err := os.ReadFile(w.path("benchmarks.hcl"))
	check(w.t, err)
	w.write("benchmarks.hcl", strings.NewReplacer("    sample ", "    "+files.Lines()+"; sample ", "samples = 4",
		"samples = 2").Replace(string(text)))
	dirs = append(dirs, filepath.Join(shared, "store", "jobs", "*"), w.path(".benchgraph", "submitted"),
		w.path(".benchgraph", "again"))
	left := func() string {
		for _, dir := range dirs {
			if all, _ := filepath.Glob(filepath.Join(dir, "*")); len(all) > 0 {
				return all[0]
			}
		}
		return ""
	}
	return &againtest.Site{Command: w.command, State: w.path(".benchgraph"), Left: left, Files: files}
}

// A block with a result is measured again as a job, see againtest.
func TestABlockIsMeasuredAgain(t *testing.T) {
	t.Parallel()
	c := newClustered(t, measuredFile)
	s := c.again(filepath.Dir(c.hold), c.work)
	s.Running = func() { c.jobIs("RUNNING") }
	s.Over = func() {
		until(t, "no job is left", func() bool { return c.Command("squeue", "-h", "-o", "%i") == "" })
	}
	s.Jobs = func() int { return len(c.jobs()) }
	s.Test(t)
}

// An input that is made again differs from that of the shared store. The blocks after it are measured with the input of
// this machine.
func TestAnInputIsMadeAgain(t *testing.T) {
	t.Parallel()
	c := newClustered(t, strings.NewReplacer("samples = 4", "samples = 2", "echo ${each.key} > $OUT/made",
		"cat VERSION; echo $(cat VERSION) ${each.key} > $OUT/made").Replace(measuredFile))
	text, err := os.ReadFile(c.path("benchmarks.hcl"))
	check(t, err)
	version := filepath.Join(filepath.Dir(c.hold), "version")
	c.write("benchmarks.hcl", strings.NewReplacer("VERSION", version, "echo devices", "cat in; echo devices").
		Replace(string(text)))
	check(t, os.WriteFile(version, []byte("one\n"), 0o644))
	c.must(0, "apply")
	c.must(0, "logs", `trial.speed["c#2"]`).says(t, "one c/fast")
	check(t, os.WriteFile(version, []byte("two\n"), 0o644))
	c.must(0, "apply", `-replace=task.built["c/fast"]`).says(t, "Apply: ")
	o := c.must(0, "logs", `trial.speed["c#2"]`)
	o.says(t, "two c/fast", "one c/base")
	o.saysNot(t, "one c/fast")
	c.must(0, "plan").says(t, "Plan: 0 to run")
	if n := len(c.jobs()); n != 4 {
		t.Errorf("%d jobs", n)
	}
}
