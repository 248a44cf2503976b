package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/job/jobtest"
	"github.com/benchgraph/benchgraph/executor/slurm"
	"github.com/benchgraph/benchgraph/executor/slurm/slurmtest"
)

// added begin the variables that Slurm and its shell add.
var added = []string{"SLURM_", "SLURMD_NODENAME=", "CUDA_VISIBLE_DEVICES=", "GPU_DEVICE_ORDINAL=",
	"ROCR_VISIBLE_DEVICES=", "ZE_AFFINITY_MASK=", "ENVIRONMENT=", "HOSTNAME=", "TMPDIR=",
	// for MPI's launchers, from Slurm 26.05
	"HYDRA_BOOTSTRAP=", "HYDRA_LAUNCHER_EXTRA_ARGS=", "I_MPI_HYDRA_BOOTSTRAP", "OMPI_MCA_plm_slurm_args=",
	"PRTE_MCA_plm_slurm_args="}

func TestScheduler(t *testing.T) {
	t.Parallel()
	jobtest.Run(t, jobtest.Traits{Adds: added, Every: 100 * time.Millisecond}, func(t *testing.T) jobtest.Site {
		s := newSite(t, slurmtest.Nodes{})
		environ := s.counting(t)
		return jobtest.Site{
			Client: func() job.Scheduler { return s.open(t, environ, slurm.Asks{}) },
			Never:  "4711/never", Dir: s.dir, Told: s.told,
			Hold: func(held bool) {
				if held {
					s.Drain("n1")
				} else {
					s.Resume("n1")
				}
			},
			Silence: func(silent bool) {
				if silent {
					s.StopController()
				} else {
					s.StartController()
				}
			},
			Lose: func(made bool, times int) job.Scheduler {
				script := fmt.Sprintf(`echo >>asked; [ $(wc -l <asked) -le %d ] || exec $REAL "$@"
! %v || $REAL "$@"
echo 'sbatch: error: Socket timed out on send/recv operation' >&2; exit 1`, times, made)
				if err := os.RemoveAll(filepath.Join(s.dir, "asked")); err != nil {
					t.Fatal(err)
				}
				return s.wrap(t, "sbatch", script)
			},
			Seen: func() string { return s.seen(t) },
			Kept: func(key string) []string {
				left, err := filepath.Glob(filepath.Join(s.dir, "*", key+".job", "*"))
				if err != nil {
					t.Fatal(err)
				}
				return left
			},
			Count: func() jobtest.Count {
				return jobtest.Count{Looks: s.calls("squeue"), Submits: s.calls("sbatch"), Details: s.calls("scontrol")}
			},
			Impossible: func(j *job.Job) { j.GPUs = 3 },
			Ends: map[string]jobtest.Ending{
				"time limit": {Time: time.Minute, State: job.Timeout, Signal: 15, Reason: "TimeLimit",
					End: func(id job.ID) { s.EndNow(id.Name()) }},
				"forgotten":  {End: func(job.ID) { s.ForgetJobs() }},
				"node fails": {State: "NODE_FAIL", End: func(job.ID) { s.Kill("n1"); s.Fail("n1") }},
				"cancelled by a person": {State: "CANCELLED", Signal: 15, End: func(id job.ID) {
					s.Command("scancel", id.Name())
				}},
			},
		}
	})
}

// counting is an environment in which commands are counted.
func (s *site) counting(t *testing.T) []string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"sbatch", "squeue", "scancel", "scontrol"} {
		text := fmt.Sprintf(`#!/bin/sh
case "$*" in *--test-only) ;; *) echo %[1]s >>%[2]s/%[1]s.calls ;; esac
PATH=${PATH#*:} exec %[1]s "$@"
`, name, s.dir)
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	environ := s.Environ()
	for i, v := range environ {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			environ[i] = "PATH=" + bin + ":" + path
		}
	}
	return environ
}

// calls is how often a command was called.
func (s *site) calls(name string) int {
	text, _ := os.ReadFile(filepath.Join(s.dir, name+".calls")) // none: never
	return strings.Count(string(text), "\n")
}

// seen is all that the files of the user and the words of Slurm say of jobs.
func (s *site) seen(t *testing.T) string {
	t.Helper()
	seen := s.Command("scontrol", "-dd", "show", "job") + s.Command("squeue", "-O", "ALL")
	for _, number := range strings.Fields(s.Command("squeue", "-h", "-o", "%A")) {
		seen += s.Command("scontrol", "write", "batch_script", number, "-")
	}
	if err := filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var text []byte
			text, err = os.ReadFile(path)
			seen += string(text)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return seen
}
