//go:build faults

package slurm_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/slurm/slurmtest"
)

// The controller notices itself that a node is dead, or cut off. On one that is cut off, the job works on until the
// node is back: then its processes are ended. A job there can be cancelled once the node counts as dead.
func TestFaultNodeIsMissed(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{Count: 3})
	on := map[string]job.ID{}
	for _, name := range []string{"a", "b", "c"} {
		j := s.job(name, "while :; do sleep 0.2; date >>"+name+".alive; done")
		j.CPUs = 16
		id := s.submit(t, j)
		on[s.reach(t, id, "RUNNING").Node] = id
	}
	s.Kill("n1")
	s.Cut("n2")
	s.Cut("n3")
	canceled := make(chan error)
	go func() { canceled <- s.client.Cancel(t.Context(), on["n3"]) }()
	for _, node := range []string{"n1", "n2"} {
		if end := s.wait(t, on[node]); end.State != "NODE_FAIL" {
			t.Errorf("on %s: %+v", node, end)
		}
	}
	if err := <-canceled; err != nil {
		t.Error(err)
	}
	if end := s.wait(t, on["n3"]); end.State != "CANCELLED" && end.State != "NODE_FAIL" {
		t.Errorf("%+v", end)
	}
	s.Join("n2")
	s.Join("n3")
	for quiet := 0; quiet < 20; { // that they end is Slurm's promise; where it does not keep it, the test does not end
		before := s.size(t)
		time.Sleep(500 * time.Millisecond)
		if quiet++; s.size(t) != before {
			quiet = 0
		}
	}
	s.Up("n1")
	if end := s.wait(t, s.submit(t, s.job("d", "true"))); end.State != "COMPLETED" {
		t.Errorf("%+v", end)
	}
}

// size is how much all jobs have written.
func (s *site) size(t *testing.T) (sum int64) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.dir, "*.alive"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	return sum
}

// Whenever the controller is killed, each submission gets a job, and each wait an end.
func TestFaultControllerIsKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{Count: 2})
	done := make(chan bool)
	for _, name := range []string{"a", "b", "c", "d"} {
		go func() {
			defer func() { done <- true }()
			for ran := false; !ran; {
				id, _, err := s.client.Submit(t.Context(), s.job(name, "sleep 4; echo >>"+name+".runs"))
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				end, err := s.client.Wait(t.Context(), id, nil)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				t.Logf("%s: %s %+v", name, id, end)
				_, err = os.Stat(filepath.Join(s.dir, name+".runs"))
				if ran = err == nil; !ran && !end.Lost && end.Held == "" && end.State == "COMPLETED" {
					t.Errorf("%s completed without a trace", name)
				}
			}
		}()
	}
	for range 6 {
		time.Sleep(time.Duration(rand.Int64N(int64(4 * time.Second))))
		s.KillController()
		time.Sleep(time.Duration(rand.Int64N(int64(time.Second))))
		s.StartController()
	}
	for range 4 {
		<-done
	}
}

// An sbatch that says nothing is not waited for without end once ctx has ended.
func TestFaultSilence(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Nodes{})
	c := s.wrap(t, "sbatch", "$REAL \"$@\" >/dev/null; exec sleep 1000")
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	var doubt *job.Unanswered
	if id, _, err := c.Submit(ctx, s.job("a", until)); !errors.As(err, &doubt) || id != "" {
		t.Fatalf("%q, %v", id, err)
	}
	id, found, err := s.client.Find(t.Context(), doubt.Key)
	if err != nil || !found {
		t.Fatalf("%v, found: %v", err, found)
	}
	if err := s.client.Cancel(t.Context(), id); err != nil {
		t.Error(err)
	}
}
