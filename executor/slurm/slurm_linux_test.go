package slurm_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/job/jobtest"
	"github.com/benchgraph/benchgraph/executor/slurm"
	"github.com/benchgraph/benchgraph/executor/slurm/slurmtest"
)

// site is a real cluster and a client of it.
type site struct {
	*slurmtest.Cluster
	client *slurm.Cluster
	dir    string

	mu   sync.Mutex
	said []string // by the client
}

func newSite(t *testing.T, nodes slurmtest.Nodes) *site {
	t.Helper()
	s := &site{Cluster: slurmtest.Start(t, nodes), dir: t.TempDir()}
	s.client = s.open(t, s.Environ(), slurm.Asks{})
	t.Cleanup(func() {
		if t.Failed() {
			s.Logs()
		}
	})
	return s
}

func (s *site) open(t *testing.T, environ []string, asks slurm.Asks) *slurm.Cluster {
	t.Helper()
	c, err := slurm.Open(t.Context(), slurm.Options{Asks: asks, WorkDir: filepath.Join(s.dir, "100%j"),
		Environ: environ, Every: 100 * time.Millisecond, Grace: 2 * time.Second, Told: func(message string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.said = append(s.said, message)
		}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// job is a job that runs in the directory of the site, and has its output in a file of its name there.
func (s *site) job(name, script string) job.Job {
	return job.Job{Key: "key." + name, Name: "trial[\"" + name + "\"] JobState=FAILED",
		Script: "cd '" + s.dir + "'\nexec >>'" + name + "' 2>&1\n" + script, Environ: []string{"PATH=/usr/bin:/bin"}}
}

func (s *site) submit(t *testing.T, j job.Job) job.ID {
	t.Helper()
	return jobtest.Submit(t, s.client, j)
}

func (s *site) wait(t *testing.T, id job.ID) job.End {
	t.Helper()
	return jobtest.Wait(t, s.client, id)
}

func (s *site) reach(t *testing.T, id job.ID, state job.State) job.Status {
	t.Helper()
	return jobtest.Reach(t, s.client, id, state)
}

// appears waits until a job has written a file of its own directory.
func (s *site) appears(t *testing.T, name string) {
	t.Helper()
	for {
		if _, err := os.Stat(filepath.Join(s.dir, name)); err == nil {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *site) text(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lines is how often something was written.
func (s *site) lines(t *testing.T, name string) int { return strings.Count(s.text(t, name), "\n") }

// A job has the variables of its node, and none of those who submit it. Options of Slurm in its script are not read.
// Output is added to what there was.
func TestJobGetsWhatItAsksFor(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{GPUs: 4})
	s.Profile("n1", "WHERE=on n1")
	client := s.open(t, append(s.Environ(), "SECRET=1", "SLURM_JOB_NAME=outer", "SBATCH_PARTITION=gpu",
		"SBATCH_ARRAY_INX=1-3", "SBATCH_TIMELIMIT=never", "SQUEUE_FORMAT=%i", "SQUEUE_STATES=RUNNING"),
		slurm.Asks{Partition: "gpu"})
	j := s.job("all", "")
	j.Key = "a.B_c:d-1"
	dir := filepath.Join(s.dir, "100%j", j.Key+".job")
	j.Script = `#SBATCH --gpus=4
echo "$WHERE|$SECRET|$CUDA_VISIBLE_DEVICES|$(pwd)"`
	j.GPUs, j.CPUs, j.Memory, j.Time = 2, 3, 100<<20+1, 61*time.Second
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "output"), []byte("before\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := client.Submit(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	end, err := client.Wait(t.Context(), id, nil)
	if err != nil || end.State != "COMPLETED" || end.Node != "n1" {
		t.Errorf("%+v, %v", end, err)
	}
	var log strings.Builder
	if err := client.Log(t.Context(), id, &log); err != nil {
		t.Error(err)
	}
	want := "before\non n1||0,1|" + dir + "\n"
	if got := log.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others can read the request: %v, %v", info.Mode(), err)
	}
	shown := s.Command("scontrol", "-o", "show", "job", id.Name())
	for _, part := range []string{"TimeLimit=00:02:00", "CPUs/Task=3", "mem=101M"} {
		if !strings.Contains(shown, part) {
			t.Errorf("no %s: %s", part, shown)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{GPUs: 2})
	for words, change := range map[string]func(*job.Job, *slurm.Asks){
		"Requested node configuration is not available": func(j *job.Job, _ *slurm.Asks) { j.GPUs = 3 },
		"node configuration is not available; ask":      func(_ *job.Job, a *slurm.Asks) { a.Gres = "gpu:b300:1" },
	} {
		j, asks := s.job("refused", "true"), slurm.Asks{}
		change(&j, &asks)
		var refused *job.Refused
		if id, _, err := s.open(t, s.Environ(), asks).Submit(t.Context(), j); !errors.As(err, &refused) ||
			!strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "sbatch:") {
			t.Errorf("%s: job %q, %v", words, id, err)
		}
	}
	for words, asks := range map[string]slurm.Asks{
		"--partition=nowhere: Invalid partition name specified; name one that sinfo lists": {Partition: "nowhere"},
		"--constraint=nothing: Invalid feature specification; name those":                  {Constraint: "nothing"},
		"--gres=fpga: Invalid generic resource (gres) specification; name those":           {Gres: "fpga"},
	} {
		if _, err := slurm.Open(t.Context(), slurm.Options{Asks: asks, Environ: s.Environ()}); err == nil ||
			!strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
	if _, err := os.Stat("/etc/slurm/slurm.conf"); err != nil {
		_, err := slurm.Open(t.Context(), slurm.Options{Environ: []string{"PATH=" + os.Getenv("PATH")}})
		if err == nil || !strings.Contains(err.Error(), "configuration source; name the cluster's configuration") {
			t.Errorf("without a configuration: %v", err)
		}
	}
	s.StopController()
	s.open(t, s.Environ(), slurm.Asks{Partition: "nowhere"}) // nobody says that there is none
	if len(s.said) != 0 {
		t.Errorf("the user was told %q", s.said)
	}
}
