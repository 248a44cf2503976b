package engine_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/needtest"
	"github.com/benchgraph/benchgraph/remote/pool"
)

const clusterNodes, clusterNodeGPUs = 8, 4

// cluster is a scheduler of machines: first come, first served, with backfill. A job with more devices than a machine
// has takes whole machines.
type cluster struct {
	mu      sync.Mutex
	free    [clusterNodes]int // devices
	waiting []*clusterJob     // in the order of their arrival
	running []*clusterJob
}

type clusterJob struct {
	gpus  int
	lasts time.Duration
	from  time.Time // before which the scheduler does not start it
	ends  time.Time
	takes [clusterNodes]int // devices
	begun chan struct{}
}

// run is a job from its submission to its end. The scheduler starts it only after a delay.
func (c *cluster) run(gpus int, delay, lasts time.Duration) {
	j := &clusterJob{gpus: gpus, lasts: lasts, from: time.Now().Add(delay), begun: make(chan struct{})}
	c.mu.Lock()
	c.waiting = append(c.waiting, j)
	c.mu.Unlock()
	time.Sleep(delay)
	c.mu.Lock()
	c.schedule()
	c.mu.Unlock()
	<-j.begun
	time.Sleep(lasts)
	c.mu.Lock()
	for i, n := range j.takes {
		c.free[i] += n
	}
	c.running = slices.DeleteFunc(c.running, func(r *clusterJob) bool { return r == j })
	c.schedule()
	c.mu.Unlock()
}

// place finds devices for a job among the free ones.
func (j *clusterJob) place(free [clusterNodes]int) (takes [clusterNodes]int, ok bool) {
	left := j.gpus
	for left >= clusterNodeGPUs {
		i := slices.Index(free[:], clusterNodeGPUs)
		if i < 0 {
			return takes, false
		}
		takes[i], free[i] = clusterNodeGPUs, 0
		left -= clusterNodeGPUs
	}
	if left == 0 {
		return takes, true
	}
	best := -1 // the fullest machine that has room
	for i, n := range free {
		if n >= left && (best < 0 || n < free[best]) {
			best = i
		}
	}
	if best < 0 {
		return takes, false
	}
	takes[best] += left
	return takes, true
}

// schedule starts the jobs that fit. Devices are kept for the first job that does not fit: a later job starts only if
// it ends before that one begins.
func (c *cluster) schedule() {
	var begins time.Time // of the first job that waits; zero: none does
	var still []*clusterJob
	for _, j := range c.waiting {
		if j.from.After(time.Now()) {
			still = append(still, j)
			continue
		}
		takes, fits := j.place(c.free)
		if !fits || !begins.IsZero() && time.Now().Add(j.lasts).After(begins) {
			if begins.IsZero() {
				begins = c.earliest(j)
			}
			still = append(still, j)
			continue
		}
		for i, n := range takes {
			c.free[i] -= n
		}
		j.takes, j.ends = takes, time.Now().Add(j.lasts)
		c.running = append(c.running, j)
		close(j.begun)
	}
	c.waiting = still
}

// earliest returns when a job can begin, from the ends of the running jobs.
func (c *cluster) earliest(j *clusterJob) time.Time {
	free := c.free
	slices.SortFunc(c.running, func(a, b *clusterJob) int { return a.ends.Compare(b.ends) })
	for _, r := range c.running {
		for i, n := range r.takes {
			free[i] += n
		}
		if _, fits := j.place(free); fits {
			return r.ends
		}
	}
	return time.Now()
}

// The campaign runs on 32 devices of a cluster, with wheels that this machine builds. It ends within an eighth of a
// bound that no schedule can beat, if builds are not all at once and the executor has a job for each device. The
// cluster considers a job after 2 minutes in the median, and after an hour at most.
func TestReplayOfTheCampaignOnACluster(t *testing.T) {
	needtest.NoRace(t)
	jobs := campaignJobs(t)
	const gpus = clusterNodes * clusterNodeGPUs
	random := rand.New(rand.NewPCG(1, 2))
	delays := make([]time.Duration, len(jobs))
	var work, longest time.Duration
	for i, j := range jobs {
		// No two builds end at the same instant: the order of their jobs would be chance.
		jobs[i].build += time.Duration(random.IntN(60_000)) * time.Millisecond
		delays[i] = min(time.Duration(float64(2*time.Minute)*math.Exp(random.NormFloat64())), time.Hour)
		work += j.run * time.Duration(j.gpus) / gpus
		longest = max(longest, jobs[i].build+delays[i]+j.run)
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%6s %8s %12s %12s %8s\n", "cores", "max_jobs", "bound", "benchgraph", "ratio")
	for _, at := range []struct {
		builds, jobs int // at once
		limit        float64
	}{
		{3, 16, 1.1}, {6, 16, 1.15}, {6, 32, 1.1}, {12, 32, 1.2}, {24, 32, 1.15},
		{24, 100, 1.1}, {94, 32, 1.3}, {94, 100, 1.5},
	} {
		cores := at.builds * buildCores
		least := max(bound(jobs, cores, gpus), longest, buildTime+slices.Min(delays)+work)
		took := replayOnCluster(t, jobs, delays, cores, at.jobs)
		ratio := took.Seconds() / least.Seconds()
		fmt.Fprintf(&table, "%6d %8d %12s %12s %8.3f\n", cores, at.jobs, least.Round(time.Minute),
			took.Round(time.Minute), ratio)
		if ratio > at.limit {
			t.Errorf("%d cores, %d jobs: %.3f times the bound", cores, at.jobs, ratio)
		}
	}
	t.Logf("\n%s", table.String())
}

// roomy is the pool of a machine that grants every request of a job.
type roomy struct{ device.Pool }

func (roomy) Fits(device.Request) error { return nil }

// replayOnCluster applies the campaign on a machine with that many cores, with that many jobs at once on the cluster.
func replayOnCluster(t *testing.T, jobs []job, delays []time.Duration, cores, most int) (took time.Duration) {
	c := &cluster{}
	for i := range c.free {
		c.free[i] = clusterNodeGPUs
	}
	var nodes []node
	for i, j := range jobs {
		nodes = append(nodes,
			node{at: "wheel." + j.commit, says: "wheel " + j.commit, asks: device.Request{CPUs: buildCores},
				do: takes(j.build), lasts: j.build},
			node{at: "trial." + j.commit, says: "trial", needs: []string{"wheel." + j.commit}, lasts: j.run,
				asks: device.Request{Queue: "cluster", GPUs: device.GPUs{Count: j.gpus}},
				do: func(context.Context, *engine.Env) error {
					c.run(j.gpus, delays[i], j.run)
					return nil
				}})
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store = newMemory(w)
		machine, err := device.NewPool(device.Options{CPUs: cores})
		if err != nil {
			t.Fatal(err)
		}
		w.pool = pool.New(machine, roomy{}, "cluster", most)
		begin := time.Now()
		if r := w.apply(nodes...); r.Done != len(nodes) {
			t.Fatalf("%+v", r)
		}
		took = time.Since(begin)
	})
	return took
}
