package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
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
	c, err := slurm.Open(slurm.Options{Asks: asks, WorkDir: filepath.Join(s.dir, "100%j"), Environ: environ,
		Every: 100 * time.Millisecond, Grace: 2 * time.Second, Told: func(message string) {
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
	id, found, err := s.client.Submit(t.Context(), j)
	if err != nil || found {
		t.Fatalf("%s: %v, found: %v", j.Name, err, found)
	}
	return id
}

func (s *site) wait(t *testing.T, id job.ID) job.End {
	t.Helper()
	end, err := s.client.Wait(t.Context(), id, func(st job.Status) { t.Logf("job %s: %+v", id, st) })
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// reach waits until a job has a state.
func (s *site) reach(t *testing.T, id job.ID, state job.State) job.Status {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last job.Status
	end, err := s.client.Wait(ctx, id, func(st job.Status) {
		if last = st; st.State == state {
			cancel()
		}
	})
	if last.State != state {
		t.Fatalf("job %s did not become %s: %+v, %+v, %v", id, state, last, end, err)
	}
	return last
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

func TestJobsEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{GPUs: 4})
	for name, script := range map[string]string{
		"0": "echo fine", "3": "exit 3", "signal": "kill -KILL $$", "gone": "exec /nonexistent",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := s.wait(t, s.submit(t, s.job(name, script)))
			end.Status = job.Status{State: end.State}
			want := map[string]job.End{"0": {}, "3": {Code: 3}, "signal": {Signal: 9}, "gone": {Code: 127}}[name]
			want.State = "FAILED"
			if name == "0" {
				want.State = "COMPLETED"
			}
			if end != want {
				t.Errorf("%+v, want %+v", end, want)
			}
		})
	}
}

// A job has its variables, whatever is in them, those of Slurm, and none of those who submit it. Options of Slurm in
// its script are not read, and its output is added to what there was.
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
echo "$A|$WHERE|$SECRET|$CUDA_VISIBLE_DEVICES|$(pwd)|$BENCHGRAPH_JOB"
env -0 >` + s.dir + "/environ"
	j.Environ = append(j.Environ, "A=1,2\nb='\"$c", "EMPTY=")
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
	if err != nil || end.State != "COMPLETED" || end.Node != "n1" || end.Started.Before(end.Submitted) ||
		time.Since(end.Submitted) > time.Hour {
		t.Errorf("%+v, %v", end, err)
	}
	var log strings.Builder
	if err := client.Log(t.Context(), id, &log); err != nil {
		t.Error(err)
	}
	want := "before\n1,2\nb='\"$c|on n1||0,1|" + dir + "|" + id.Name() + "\n"
	if got := log.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others can read the request: %v, %v", info.Mode(), err)
	}
	for v := range strings.SplitSeq(s.text(t, "environ"), "\x00") {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "", "PATH", "A", "EMPTY", "WHERE", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES",
			"ZE_AFFINITY_MASK", "ENVIRONMENT", "HOSTNAME", "PWD", "TMPDIR", "SLURMD_NODENAME", "BENCHGRAPH_JOB",
			"BENCHGRAPH_REQUEST", "BENCHGRAPH_REQUEST_KEY":
		default:
			if !strings.HasPrefix(name, "SLURM_") {
				t.Errorf("the job has %s", v)
			}
		}
	}
	if err := client.Forget(t.Context(), j.Key); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of the job is left: %v", err)
	}
	shown := s.Command("scontrol", "-o", "show", "job", id.Name())
	for _, part := range []string{"TimeLimit=00:02:00", "CPUs/Task=3", "mem=101M"} {
		if !strings.Contains(shown, part) {
			t.Errorf("no %s: %s", part, shown)
		}
	}
}

// Two who submit the same work get the same job, in one process and in two. Once it has ended, it is submitted anew.
func TestOneKeyIsOneJob(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{})
	j := s.job("one", take+"echo once >>runs; while [ ! -e go ]; do sleep 0.1; done")
	j.Request = []byte("lent to the job\n")
	other := func() *slurm.Cluster { return s.open(t, s.Environ(), slurm.Asks{}) }
	clients := []*slurm.Cluster{s.client, other(), other(), other()}
	ids := make([]job.ID, 2*len(clients))
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			var err error
			if ids[i], _, err = clients[i/2].Submit(t.Context(), j); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("several jobs: %v", ids)
		}
	}
	if id, found, err := clients[1].Find(t.Context(), j.Key); id != ids[0] || !found || err != nil {
		t.Errorf("%v, %v, %v", id, found, err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.wait(t, ids[0])
	s.took(t, string(j.Request)) // and not that of a job that was cancelled
	next := s.submit(t, j)
	if s.wait(t, next); next == ids[0] || s.lines(t, "runs") != 2 {
		t.Errorf("jobs %s and %s ran %d times", ids[0], next, s.lines(t, "runs"))
	}
}

// Nothing of a job is left when Cancel returns, even if it does not want to end.
func TestCancel(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{GPUs: 1})
	j := s.job("stubborn", "trap '' TERM; exec 9<>life; echo >up; while :; do sleep 0.1; date >>alive; done")
	j.GPUs = 1
	running := s.submit(t, j)
	s.reach(t, running, "RUNNING")
	s.appears(t, "alive")
	j.Key = "next"
	waiting := s.submit(t, j)
	s.reach(t, waiting, "PENDING")
	for _, id := range []job.ID{waiting, running} {
		if err := s.client.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if end := s.wait(t, id); end.State != "CANCELLED" || end.Lost || end.Held != "" {
			t.Errorf("%+v", end)
		}
	}
	before := s.text(t, "alive")
	time.Sleep(500 * time.Millisecond)
	if s.text(t, "alive") != before {
		t.Error("the job writes on after it was cancelled")
	}
	if err := s.client.Cancel(t.Context(), running); err != nil {
		t.Errorf("one that has ended: %v", err)
	}
	if err := s.client.Cancel(t.Context(), "4711/never"); err != nil {
		t.Errorf("one that never was: %v", err)
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
	} {
		if _, err := slurm.Open(slurm.Options{Asks: asks, Environ: s.Environ()}); err == nil ||
			!strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
	if _, err := os.Stat("/etc/slurm/slurm.conf"); err != nil {
		_, err := slurm.Open(slurm.Options{Environ: []string{"PATH=" + os.Getenv("PATH")}})
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

// Thirty jobs need no more looks at the queue than one, and one question each about how they ended.
func TestManyJobsShareTheLooks(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{Count: 2})
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
	c, err := slurm.Open(slurm.Options{WorkDir: t.TempDir(), Environ: environ, Every: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			id, _, err := c.Submit(t.Context(), s.job(fmt.Sprint(i), "echo >>runs; exit 7"))
			if err != nil {
				t.Error(err)
				return
			}
			if end, err := c.Wait(t.Context(), id, nil); err != nil || end.Code != 7 {
				t.Errorf("%+v, %v", end, err)
			}
		})
	}
	all.Wait()
	seconds := int(time.Since(begin) / time.Second)
	looks := s.lines(t, "squeue.calls")
	t.Logf("%d looks in %d s", looks, seconds)
	// two for each submission at most, which all share where they come together, and one a second
	if most := seconds + 2 + 2*30; looks > most {
		t.Errorf("%d looks in %d s", looks, seconds)
	}
	if n := s.lines(t, "scontrol.calls"); n != 30 {
		t.Errorf("%d questions about 30 jobs that failed", n)
	}
	if s.lines(t, "sbatch.calls") != 30 || s.lines(t, "runs") != 30 {
		t.Errorf("submitted %d times, ran %d times", s.lines(t, "sbatch.calls"), s.lines(t, "runs"))
	}
}

// take are lines of a job that take its request, as a worker does.
const take = `mv "$BENCHGRAPH_REQUEST" took; printf %s "$BENCHGRAPH_REQUEST_KEY" >took.key` + "\n"

// took fails the test unless a job has taken a request. It returns the encryption key.
func (s *site) took(t *testing.T, want string) (key string) {
	t.Helper()
	key = s.text(t, "took.key")
	if got, err := job.Decrypt([]byte(s.text(t, "took")), key); err != nil || string(got) != want {
		t.Errorf("the request of the job is %q, %v", got, err)
	}
	return key
}

// A job alone can read its request. While the job is queued, neither the files of the user nor Slurm's words about the
// job have both the request and the encryption key. When the job has taken its request, none is written again.
func TestARequestIsForItsJob(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{})
	s.Drain("n1")
	j := s.job("taken", take+"touch runs; while [ ! -e over ]; do sleep 0.05; done")
	j.Request = []byte("lent to the job\n")
	id := s.submit(t, j)
	s.reach(t, id, job.Pending)
	seen := s.Command("scontrol", "-dd", "show", "job", id.Name()) + s.Command("squeue", "-O", "ALL") +
		s.Command("scontrol", "write", "batch_script", id.Name(), "-")
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
	s.Resume("n1")
	s.appears(t, "runs")
	if key := s.took(t, string(j.Request)); strings.Contains(seen, key) || strings.Contains(seen, "lent") {
		t.Errorf("others could read the request while the job was queued: %s", seen)
	}
	j.Request = []byte("lent once more\n")
	if again, found, err := s.client.Submit(t.Context(), j); err != nil || !found || again != id {
		t.Errorf("job %s: found %v, %v", again, found, err)
	}
	if left, err := filepath.Glob(filepath.Join(s.dir, "*", "*", "request*")); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "over"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.wait(t, id)
}
