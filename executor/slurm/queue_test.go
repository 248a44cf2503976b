package slurm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

func TestQueueLines(t *testing.T) {
	for line, want := range map[string]entry{
		"7|RUNNING|None|n1|1795641800|1795641802|/jobs/x|y/a:1.job": {number: "7", key: "a:1",
			status: job.Status{State: "RUNNING", Node: "n1", Submitted: time.Unix(1795641800, 0),
				Started: time.Unix(1795641802, 0)}},
		"8|PENDING|launch failed requeued held||1795641800|1827177803|/jobs/a.job/mine": {number: "8",
			status: job.Status{State: "PENDING", Reason: "launch failed requeued held",
				Submitted: time.Unix(1795641800, 0)}},
		"9|COMPLETING|None|n[1-2]|2026-11-25T21:23:21|N/A|/jobs/a b.job": {number: "9",
			status: job.Status{State: "COMPLETING", Node: "n[1-2]"}},
	} {
		if got := parseQueue("CLUSTER: other\n" + line + "\n"); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %+v", line, got)
		}
	}
	none := "0|RUNNING|||||\n-1|RUNNING|||||\n1||||||\n1|RUNNING|\nx\n\n99999999999|RUNNING|||||"
	if got := parseQueue(none); got != nil {
		t.Errorf("%+v", got)
	}
}

// After an interrupt, no command of Slurm starts.
func TestAnInterruptedOpeningAsksNothing(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"sbatch", "squeue", "scancel", "scontrol"} {
		text := "#!/bin/sh\n>>'" + dir + "/asked'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for ctx, asks := range map[context.Context]bool{t.Context(): true, interrupted: false} {
		if _, err := Open(ctx, Options{Environ: []string{"PATH=" + dir}}); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "asked")); (err == nil) != asks {
			t.Errorf("a command should have started: %t, %v", asks, err)
		}
	}
}

func TestJobLine(t *testing.T) {
	e, ok := parseJob("JobId=6 JobName=x UserId=root(0) JobState=FAILED Reason=NonZeroExitCode Dependency=(null) " +
		"Requeue=0 Restarts=2 ExitCode=3:9 SubmitTime=1795641800 StartTime=Unknown NodeList=n1 Comment=a " +
		"JobState=RUNNING ExitCode=0:0")
	want := entry{number: "6", status: job.Status{State: "FAILED", Reason: "NonZeroExitCode", Node: "n1",
		Submitted: time.Unix(1795641800, 0)},
		code: 3, signal: 9, restarts: 2}
	if !ok || e != want {
		t.Errorf("%+v", e)
	}
	e, ok = parseAccount("5|FAILED|1:0|n1||\n6|PENDING|0:0|None assigned|1|Unknown\n"+
		"6|CANCELLED by 0|0:15|n1|1|2\n", "6")
	if !ok || e.status.State != "CANCELLED" || e.signal != 15 || e.status.Node != "n1" {
		t.Errorf("%+v, %v", e, ok)
	}
}

// Reasons are told in Slurm's words, and what they mean.
func TestReasonsAreExplained(t *testing.T) {
	for reason, want := range map[string]string{
		"JobHeldAdmin":                           "it is held; scontrol release 7 lets it start",
		"ReqNodeNotAvail, UnavailableNodes:n[1]": "sinfo -R says why nodes are out of use",
		"Resources":                              "other jobs have what it needs",
		"Priority":                               "other jobs come before it",
		"PartitionDown":                          "the partition starts no jobs now",
		"QOSMaxJobsPerUserLimit":                 "a limit of your account; other jobs have to end before",
		"Licenses":                               "",
	} {
		if want = reason + " (" + want + ")"; strings.HasSuffix(want, "()") {
			want = reason
		}
		if got := explained(job.Status{State: job.Pending, Reason: reason}, "7").Reason; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if s := (job.Status{State: job.Running, Reason: "Priority"}); explained(s, "7") != s {
		t.Error("a job that runs waits for nothing")
	}
}

// A person may hold a job and release it later; nobody releases a job that Slurm holds.
func TestStuckStates(t *testing.T) {
	for status, want := range map[job.Status]stuck{
		{State: "PENDING", Reason: "launch failed requeued held"}:     forever,
		{State: "PENDING", Reason: "launch_failed_requeued_held"}:     forever,
		{State: "PENDING", Reason: "DependencyNeverSatisfied"}:        forever,
		{State: "PENDING", Reason: "QOSMaxGRESPerJob"}:                forever,
		{State: "PENDING", Reason: "AssocMaxWallDurationPerJobLimit"}: forever,
		{State: "REQUEUE_HOLD"}:                                       forever,
		{State: "PENDING", Reason: "JobHeldAdmin"}:                    requeued,
		{State: "PENDING", Reason: "PartitionDown"}:                   moves,
		{State: "PENDING", Reason: "Resources"}:                       moves,
		{State: "PENDING", Reason: "QOSGrpGRES"}:                      moves,
		{State: "PENDING", Reason: "QOSMaxJobsPerUserLimit"}:          moves,
		{State: "PENDING"}: moves,
		{State: "RUNNING", Reason: "PartitionNodeLimit"}: moves,
	} {
		if got := stuckOf(status); got != want {
			t.Errorf("%+v: %v, want %v", status, got, want)
		}
	}
}

// Whatever Slurm says, jobs have numbers and states that can be shown, and keys that can be looked for.
func FuzzQueue(f *testing.F) {
	f.Add("7|RUNNING|None|n1|1795641800|1795641802|/jobs/a:1.job\n8|PENDING|x y||1|N/A|(null)\n")
	f.Add("CLUSTER: other\n1|A|b|c|d|e|/k\x00.job|\n1|\x1b[2J|||99999999999999||.job")
	f.Add("JobId=6 JobName=x JobState=FAILED Reason=None ExitCode=3:9 Restarts=1 NodeList=n1 SubmitTime=1 Comment=k\n")
	f.Add("6|CANCELLED by 0|0:15|n1|1|2\n6||||||\n")
	f.Fuzz(func(t *testing.T, text string) {
		var all []entry
		fuzzing.Frugal(t, len(text), func() {
			all = parseQueue(text)
			if e, ok := parseJob(text); ok {
				all = append(all, e)
			}
			if e, ok := parseAccount(text, "6"); ok {
				all = append(all, e)
			}
		})
		for _, e := range all {
			if !isNumber(e.number) || e.status.State == "" || e.key != "" && !job.IsKey(e.key) {
				t.Fatalf("%+v", e)
			}
			for _, s := range []string{string(e.status.State), e.status.Reason, e.status.Node} {
				if len(s) > mostField+len("…") || strings.ContainsAny(s, "\x00\n\x1b") {
					t.Fatalf("%q", s)
				}
			}
		}
	})
}
