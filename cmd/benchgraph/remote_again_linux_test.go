package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// newAgain is a clustered project whose blocks note each run of a member.
func newAgain(t *testing.T, file string) *clustered {
	c := newClustered(t, strings.NewReplacer("    sample $(", "    echo ran >>RAN; sample $(", "samples = 4",
		"samples = 2").Replace(file))
	text, err := os.ReadFile(c.path("benchmarks.hcl"))
	check(t, err)
	c.write("benchmarks.hcl", strings.ReplaceAll(string(text), "RAN", filepath.Join(filepath.Dir(c.hold), "ran")))
	return c
}

// ran returns how often members of blocks ran.
func (c *clustered) ran() int {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(c.hold), "ran"))
	check(c.t, err)
	return strings.Count(string(text), "ran\n")
}

// A block with a result is measured again as a job, once: the new result stands here, and the shared store keeps the
// old one. An apply that is killed meanwhile is followed by one that takes the result of the job, and no older one.
func TestABlockIsMeasuredAgain(t *testing.T) {
	t.Parallel()
	c := newAgain(t, measuredFile)
	const block = `trial.speed["c#2"]`
	stored := func() string {
		t.Helper()
		var shown struct{ Result struct{ Digest string } }
		c.json(&shown, "show", "-json", block)
		return shown.Result.Digest
	}
	counts := func(jobs, ran int) {
		t.Helper()
		if n := len(c.jobs()); n != jobs || c.ran() != ran {
			t.Errorf("%d jobs and %d runs of members; want %d and %d", n, c.ran(), jobs, ran)
		}
	}
	c.must(0, "apply")
	counts(2, 4)
	old := stored()
	o := c.must(0, "apply", "-replace="+block)
	o.says(t, "job 4 is submitted", "Apply: ", "on this machine, its own results stand")
	counts(3, 6)
	second := stored()
	if second == old {
		t.Error("the old result stands")
	}
	c.must(0, "plan").says(t, "Plan: 0 to run")

	// The job ends while no apply follows it.
	check(t, os.WriteFile(c.hold, nil, 0o644))
	cmd := c.command("apply", "-replace="+block)
	check(t, cmd.Start())
	c.jobIs("RUNNING")
	check(t, cmd.Process.Kill())
	_ = cmd.Wait()
	check(t, os.Remove(c.hold))
	until(t, "the job is over", func() bool { return c.Command("squeue", "-h", "-o", "%i") == "" })
	c.must(0, "plan").says(t, block, "asked for by -replace")
	c.must(0, "apply").says(t, "Apply: ")
	counts(4, 8)
	third := stored()
	if third == second {
		t.Error("the result of the job was not taken")
	}

	// The job goes on, and is followed; by a third apply, too.
	check(t, os.WriteFile(c.hold, nil, 0o644))
	c.must(0, "apply", "-detach", "-replace="+block).says(t, "1 job goes on")
	c.must(0, "apply", "-detach", "-replace="+block).says(t, "was submitted before", "1 job goes on")
	check(t, os.Remove(c.hold))
	c.must(0, "apply").says(t, "Apply: ")
	counts(5, 10)
	if stored() == third {
		t.Error("the result of the job was not taken")
	}

	// Whoever has only the shared store has the first result. Nothing is left.
	c.must(0, "apply").says(t, "Apply: 0 done")
	counts(5, 10)
	for _, dir := range []string{c.work, filepath.Join(filepath.Dir(c.hold), "store", "jobs", "*"),
		c.path(".benchgraph", "submitted"), c.path(".benchgraph", "again")} {
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		if check(t, err); len(left) > 0 {
			t.Errorf("%v is left of jobs", left)
		}
	}
	check(t, fs.RemoveTree(c.path(".benchgraph")))
	c.must(0, "apply").says(t, "Apply: 0 done")
	if stored() != old {
		t.Error("the shared store has another result")
	}
}

// An input that is made again is another one than that of the shared store. The blocks that follow it are measured with
// the one of this machine.
func TestAnInputIsMadeAgain(t *testing.T) {
	t.Parallel()
	c := newAgain(t, strings.Replace(measuredFile, "echo ${each.key} > $OUT/made",
		"cat VERSION; echo $(cat VERSION) ${each.key} > $OUT/made", 1))
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

// A candidate that fails when its block is measured again has failed. Only -retry-failed measures the block once more.
func TestABlockFailsAgain(t *testing.T) {
	t.Parallel()
	c := newAgain(t, strings.Replace(measuredFile, "sample $(",
		"! [ -e BAD ] || { echo no such kernel; exit 3; }; sample $(", 1))
	text, err := os.ReadFile(c.path("benchmarks.hcl"))
	check(t, err)
	bad := filepath.Join(filepath.Dir(c.hold), "bad")
	c.write("benchmarks.hcl", strings.ReplaceAll(string(text), "BAD", bad))
	c.must(0, "apply")
	check(t, os.WriteFile(bad, nil, 0o644))
	c.must(3, "apply", `-replace=trial.speed["c#2"]`).says(t, "no such kernel")
	check(t, os.Remove(bad))
	c.must(3, "apply")
	if n := len(c.jobs()); n != 3 {
		t.Errorf("%d jobs", n)
	}
	c.must(0, "apply", "-retry-failed").says(t, "Apply: ")
	c.must(0, "plan").says(t, "Plan: 0 to run")
	if n := len(c.jobs()); n != 4 {
		t.Errorf("%d jobs", n)
	}
}
