// Package againtest measures blocks again as jobs, whatever runs the jobs.
package againtest

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// Site is a project with a benchmark "speed" of a commit "c" and two candidates, in two blocks that run as jobs.
type Site struct {
	// makes a command of benchgraph in the directory of the project, not yet started
	Command func(args ...string) *exec.Cmd
	Running func()        // waits until a job runs
	Over    func()        // waits until no job is queued or runs
	Jobs    func() int    // number of jobs so far
	Left    func() string // what finished jobs have left; "": nothing
	State   string        // directory of the project's state
	Files
}

// Files are absolute paths that Lines name.
type Files struct {
	Hold string // while it exists, measured commands do not end
	Bad  string // while it exists, measured commands fail
	Ran  string // gets a line for each run of a member
}

// Lines returns the first lines of the benchmark's command.
func (f Files) Lines() string {
	return "echo ran >>" + f.Ran + "; [ ! -e " + f.Bad + " ] || { echo no such kernel; exit 3; }; " +
		"while [ -e " + f.Hold + " ]; do sleep 0.05; done"
}

const block = `trial.speed["c#2"]`

// kill stands for the exit code of an apply that is killed while its job runs.
const kill = -1

// steps follow each other. Jobs and runs of members are counted from the beginning.
var steps = []struct {
	why       string
	hold, bad bool
	args      string
	code      int
	says      string
	jobs, ran int
	other     bool // the block has another result than after the step before
}{
	{why: "the first time", args: "apply", says: "Apply: ", jobs: 2, ran: 4, other: true},
	{why: "once", args: "apply -replace=" + block, says: "its own results stand", jobs: 3, ran: 6,
		other: true},
	{why: "and not twice", args: "apply", says: "Apply: 0 done", jobs: 3, ran: 6},
	{why: "the job goes on when its apply is killed", hold: true, args: "apply -replace=" + block, code: kill, jobs: 4},
	{why: "and is followed", hold: true, args: "apply -detach -replace=" + block, says: "was submitted before",
		jobs: 4},
	{why: "its result is still asked for", args: "plan", says: "asked for by -replace", jobs: 4, ran: 8},
	{why: "and is taken", args: "apply", says: "Apply: ", jobs: 4, ran: 8, other: true},
	{why: "a candidate fails", bad: true, args: "apply -replace=" + block, code: 3, says: "no such kernel", jobs: 5},
	{why: "that stands", args: "apply", code: 3, says: "no such kernel", jobs: 5},
	{why: "until it is tried again", args: "apply -retry-failed", says: "Apply: ", jobs: 6, other: true},
	{why: "nothing is left to be done", args: "plan", says: "Plan: 0 to run", jobs: 6},
	{why: "what jobs have left is removed", args: "apply", says: "Apply: 0 done", jobs: 6},
}

// Test measures the second block several times. At the end, the project has the last result, and the shared store the
// first.
func (s *Site) Test(t testing.TB) {
	t.Helper()
	var first, last string
	for _, step := range steps {
		set(t, s.Hold, step.hold)
		set(t, s.Bad, step.bad)
		if !step.hold && step.ran > 0 {
			s.Over()
		}
		args := strings.Fields(step.args)
		if step.code == kill {
			cmd := s.Command(args...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			s.Running()
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		} else if out := s.run(t, step.code, args...); !strings.Contains(out, step.says) {
			t.Errorf("%s: %s does not say %q:\n%s", step.why, step.args, step.says, out)
		}
		if n := s.Jobs(); n != step.jobs {
			t.Errorf("%s: %d jobs; want %d", step.why, n, step.jobs)
		}
		if text, _ := os.ReadFile(s.Ran); step.ran > 0 && strings.Count(string(text), "ran\n") != step.ran {
			t.Errorf("%s: members ran %d times; want %d", step.why, strings.Count(string(text), "ran\n"), step.ran)
		}
		if step.hold || step.code != 0 || args[0] != "apply" {
			continue
		}
		now := s.digest(t)
		if first == "" {
			first = now
		}
		if (now != last) != step.other {
			t.Errorf("%s: another result: %v", step.why, !step.other)
		}
		last = now
	}
	if left := s.Left(); left != "" {
		t.Errorf("%s is left of jobs", left)
	}
	if err := fs.RemoveTree(s.State); err != nil {
		t.Fatal(err)
	}
	if out := s.run(t, 0, "apply"); !strings.Contains(out, "Apply: 0 done") || s.digest(t) != first {
		t.Errorf("the shared store has another result than the first:\n%s", out)
	}
}

func set(t testing.TB, file string, there bool) {
	t.Helper()
	err := os.RemoveAll(file)
	if there {
		err = os.WriteFile(file, nil, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run runs benchgraph, which must end with the exit code, and returns all output.
func (s *Site) run(t testing.TB, code int, args ...string) string {
	t.Helper()
	cmd := s.Command(args...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("%v: exit code %d; want %d\n%s", args, got, code, out.String())
	}
	return out.String()
}

// digest returns the digest of the block's result.
func (s *Site) digest(t testing.TB) string {
	t.Helper()
	cmd := s.Command("show", "-json", block)
	cmd.Stdout, cmd.Stderr = nil, nil
	text, err := cmd.Output()
	var shown struct{ Result struct{ Digest string } }
	if err == nil {
		err = json.Unmarshal(text, &shown)
	}
	if err != nil || shown.Result.Digest == "" {
		t.Fatalf("%s has no result: %v: %s", block, err, text)
	}
	return shown.Result.Digest
}
