package slurm_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/slurm"
	"github.com/benchgraph/benchgraph/executor/slurm/slurmtest"
)

// until is a script that runs until there is a file go, and counts its runs.
const until = "echo >>runs; echo >up; while [ ! -e go ]; do sleep 0.1; done"

func (s *site) release(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *site) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said
}

func TestFaultNodeDies(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{Count: 2})
	id := s.submit(t, s.job("a", until))
	node := s.reach(t, id, "RUNNING").Node
	s.appears(t, "up")
	s.Kill(node)
	time.Sleep(2 * time.Second) // Slurm 26.05 takes its late answer to the start of the job for a sign of life
	s.Fail(node)
	if end := s.wait(t, id); end.State != "NODE_FAIL" || end.Lost || end.Held != "" {
		t.Errorf("%+v", end)
	}
	next := s.submit(t, s.job("a", until))
	if other := s.reach(t, next, "RUNNING").Node; other == node || other == "" {
		t.Errorf("on %q, after %q failed", other, node)
	}
	s.release(t)
	s.Up(node)
	if end := s.wait(t, next); end.State != "COMPLETED" || s.lines(t, "runs") != 2 {
		t.Errorf("%+v after %d runs", end, s.lines(t, "runs"))
	}
}

// wrap puts a script in the place of a command. The command itself is $REAL there.
func (s *site) wrap(t *testing.T, name, script string) *slurm.Cluster {
	t.Helper()
	bin := t.TempDir()
	text := "#!/bin/sh\ncd " + s.dir + "\nPATH=${PATH#*:}; REAL=" + name +
		"\ncase \"$*\" in *--test-only) exec $REAL \"$@\" ;; esac\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	environ := s.Environ()
	for i, v := range environ {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			environ[i] = "PATH=" + bin + ":" + path
		}
	}
	return s.open(t, environ, slurm.Asks{})
}

// The job is there, but the answer of sbatch is lost: with an error, and with none that could be read. It may be there
// only a while later.
func TestFaultAnswerIsLost(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{})
	for name, script := range map[string]string{
		"error":   "$REAL \"$@\"; echo 'sbatch: error: Socket timed out on send/recv operation' >&2; exit 1",
		"nothing": "$REAL \"$@\" >/dev/null",
		"late": `cat >late.sh; (sleep 1; $REAL "$@" <late.sh) >/dev/null 2>&1 &
			echo 'sbatch: error: Unable to contact slurm controller (connect failure)' >&2; exit 1`,
		"killed": "$REAL \"$@\" >/dev/null; kill -KILL $$",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := s.wrap(t, "sbatch", "echo >>"+name+".calls\n"+script)
			id, found, err := c.Submit(t.Context(), s.job(name, "echo >>"+name+".runs"))
			if err != nil || found {
				t.Fatalf("%v, found: %v", err, found)
			}
			end, err := c.Wait(t.Context(), id, nil)
			if err != nil || end.State != "COMPLETED" {
				t.Errorf("%+v, %v", end, err)
			}
			if calls, runs := s.lines(t, name+".calls"), s.lines(t, name+".runs"); calls != 1 || runs != 1 {
				t.Errorf("submitted %d times, ran %d times", calls, runs)
			}
		})
	}
}

// The sbatch of a site prints more than the number of a job, and a limit of a group passes when other jobs end.
func TestFaultWordsOfSbatch(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{})
	for name, script := range map[string]string{
		"lines": `echo 'Welcome; 30 % of your quota is used'; $REAL "$@"; echo thanks`,
		"limit": `[ $(wc -l <limit.calls) -gt 1 ] || { echo 'sbatch: error: QOSGrpSubmitJobsLimit
sbatch: error: Batch job submission failed: Job violates accounting/QOS policy' >&2; exit 1; }; exec $REAL "$@"`,
	} {
		before := len(s.told())
		c := s.wrap(t, "sbatch", "echo >>"+name+".calls\n"+script)
		id, _, err := c.Submit(t.Context(), s.job(name, "echo >>"+name+".runs"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		end, err := c.Wait(t.Context(), id, nil)
		if err != nil || end.State != "COMPLETED" || s.lines(t, name+".runs") != 1 {
			t.Errorf("%s: %+v, %v", name, end, err)
		}
		for _, said := range s.told()[before:] {
			if name != "limit" || !strings.Contains(said, "takes no more jobs for now") {
				t.Errorf("%s: the user was told %q", name, said)
			}
		}
	}
}

// A person, or a plugin of the cluster, changes the comment and the name of a job, which is the same job all the same.
func TestFaultCommentIsChanged(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{})
	id := s.submit(t, s.job("a", until))
	s.appears(t, "up")
	s.Command("scontrol", "update", "jobid="+id.Name(), "comment=mine", "name=mine")
	if again, found, err := s.client.Submit(t.Context(), s.job("a", until)); err != nil || !found || again != id {
		t.Errorf("%s, found: %v, %v", again, found, err)
	}
	s.release(t)
	if end := s.wait(t, id); end.State != "COMPLETED" || s.lines(t, "runs") != 1 {
		t.Errorf("%+v after %d runs", end, s.lines(t, "runs"))
	}
}

// A job that the controller has forgotten is lost, unless the accounts have it. One that an empty answer lacks is not.
func TestFaultJobIsForgotten(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{Config: []string{"MinJobAge=2"}})
	id := s.submit(t, s.job("a", "exit 3"))
	for strings.Contains(s.Command("squeue", "-h", "-a", "-t", "all", "-o", "%A"), id.Name()) {
		time.Sleep(100 * time.Millisecond)
	}
	if end := s.wait(t, id); !end.Lost || end.State != "" {
		t.Errorf("%+v", end)
	}
	accounts := s.wrap(t, "sacct", `for a; do
	case $a in --jobs=*) printf '%s|RUNNING|0:0|n1|1|2\n%s|FAILED|3:0|n1|1|2\n' ${a#--jobs=} ${a#--jobs=} ;; esac
done`)
	end, err := accounts.Wait(t.Context(), id, nil)
	if err != nil || end.Lost || end.State != "FAILED" || end.Code != 3 || end.Node != "n1" {
		t.Errorf("%+v, %v", end, err)
	}
	id = s.submit(t, s.job("b", until))
	s.appears(t, "up")
	c := s.wrap(t, "squeue", "[ ! -e go ] || $REAL \"$@\"")
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	if end, err := c.Wait(ctx, id, nil); err == nil {
		t.Errorf("it runs, but: %+v", end)
	}
	s.release(t)
	if end := s.wait(t, id); end.State != "COMPLETED" {
		t.Errorf("%+v", end)
	}
}

// A job that can never run is cancelled. One that a person holds is not.
func TestFaultNeverRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{})
	blocker := s.job("blocker", until)
	blocker.CPUs = 16
	first := s.submit(t, blocker)
	s.reach(t, first, "RUNNING")
	failed := s.submit(t, s.job("failed", "exit 1"))
	waits, held := s.submit(t, s.job("waits", "true")), s.submit(t, s.job("held", "true"))
	s.Command("scontrol", "update", "jobid="+waits.Name(), "dependency=afterok:"+failed.Name())
	s.Command("scontrol", "hold", held.Name())
	s.release(t)
	reason := make(chan string, 100)
	done := make(chan job.End, 1)
	go func() {
		end, err := s.client.Wait(t.Context(), held, func(st job.Status) { reason <- st.Reason })
		if err != nil {
			t.Error(err)
		}
		done <- end
	}()
	if end := s.wait(t, waits); end.State != "CANCELLED" || end.Held != "DependencyNeverSatisfied" {
		t.Errorf("%+v", end)
	}
	for r := ""; !strings.HasPrefix(r, "JobHeld"); r = <-reason {
	}
	s.Command("scontrol", "release", held.Name())
	if end := <-done; end.State != "COMPLETED" || end.Held != "" {
		t.Errorf("%+v", end)
	}
}

// A controller that is killed may remember less than it did. Each job has an end all the same: one that the controller
// remembers runs, one that it has forgotten is lost, even if another one has its number by now. If Slurm 26.05
// remembers a job that runs as one that waits, the node ends the job, which has failed then.
func TestFaultControllerIsKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{Count: 2})
	var ids []job.ID
	for _, name := range []string{"a", "b", "c"} {
		ids = append(ids, s.submit(t, s.job(name, "echo >>"+name+".runs; sleep 6; echo >>"+name+".runs")))
	}
	s.appears(t, "a.runs")
	s.appears(t, "c.runs")
	s.KillController()
	s.StartController()
	after := s.submit(t, s.job("after", "true"))
	for i, name := range []string{"a", "b", "c"} {
		switch end := s.wait(t, ids[i]); {
		case end.State == "FAILED" && end.Code == 1 && s.lines(t, name+".runs") == 1:
			t.Logf("%s: its node ended it", ids[i])
		case end.Lost == (end.State == "COMPLETED"):
			t.Errorf("%s: %+v", name, end)
		case !end.Lost && ids[i].Name() == after.Name():
			t.Errorf("%s has the number of another job, and %+v", name, end)
		default:
			t.Logf("%s: lost: %v; beside it: %s", ids[i], end.Lost, after)
		}
	}
	if end := s.wait(t, after); end.State != "COMPLETED" {
		t.Errorf("%+v", end)
	}
}

// A node that cannot start a job gives it back. Jobs that may not start again are cancelled then.
func TestFaultNodeCannotStartJobs(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{Config: []string{"Prolog=/bin/false"}})
	if end := s.wait(t, s.submit(t, s.job("a", until))); end.State != "CANCELLED" {
		t.Errorf("%+v", end)
	}
}

// A node without its network works on. The job's end is late after a short cut. After a long one the node has failed,
// whatever the job does.
func TestFaultNetworkIsCut(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{})
	id := s.submit(t, s.job("a", until))
	s.appears(t, "up")
	s.Cut("n1")
	s.release(t)
	time.Sleep(2 * time.Second)
	s.Join("n1")
	if end := s.wait(t, id); end.State != "COMPLETED" {
		t.Errorf("%+v", end)
	}
	for _, name := range []string{"go", "up"} {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	id = s.submit(t, s.job("b", until))
	s.appears(t, "up")
	s.Cut("n1")
	s.Fail("n1")
	if end := s.wait(t, id); end.State != "NODE_FAIL" {
		t.Errorf("%+v", end)
	}
	s.Join("n1")
	s.release(t)
	s.Resume("n1")
	if end := s.wait(t, s.submit(t, s.job("b", "true"))); end.State != "COMPLETED" {
		t.Errorf("%+v", end)
	}
}
