package engine_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/gputest"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

// job is one commit of the campaign: a wheel that is built and then measured on some devices.
type job struct {
	commit string
	gpus   int
	build  time.Duration
	run    time.Duration

	// for the replay of GPU-hours
	measured bool // the recorded run ended with figures
	model    string
	weights  int64 // bytes; 0: they are made up
	compiles bool  // the engine compiles the model when it starts
	warmup   time.Duration
	measure  time.Duration // of one pass of the command
}

const (
	buildTime  = 30 * time.Minute
	buildCores = 32
)

// campaignJobs reads the commits with the times that their measurements took. Some broke off before they began; those
// count with the median of the others.
func campaignJobs(t *testing.T) []job {
	t.Helper()
	f, err := os.Open("testdata/campaign.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var jobs []job
	var known []float64
	for _, row := range rows[1:] {
		number := func(column int) (value float64) {
			if row[column] != "" {
				if value, err = strconv.ParseFloat(row[column], 64); err != nil {
					t.Fatal(err)
				}
			}
			return value
		}
		seconds := func(column int) time.Duration { return time.Duration(number(column) * float64(time.Second)) }
		if row[2] != "" {
			known = append(known, number(2))
		}
		jobs = append(jobs, job{
			commit: row[0], gpus: int(number(1)), build: buildTime, run: seconds(2), measured: row[3] == "yes",
			model: row[4], weights: int64(number(5) * 1e9), compiles: row[6] == "yes", warmup: seconds(7),
			measure: seconds(8),
		})
	}
	slices.Sort(known)
	for i := range jobs {
		if jobs[i].run == 0 {
			jobs[i].run = time.Duration(known[len(known)/2] * float64(time.Second))
		}
	}
	return jobs
}

// bound is below every schedule: the longest job, and the work of each resource shared out evenly.
func bound(jobs []job, cores, gpus int) time.Duration {
	var longest, builds, runs time.Duration
	for _, j := range jobs {
		longest = max(longest, j.build+j.run)
		builds += j.build * buildCores / time.Duration(cores)
		runs += j.run * time.Duration(j.gpus) / time.Duration(gpus)
	}
	return max(longest, builds, runs)
}

// fifo is how long it takes when everything starts in the order of the file, and whatever is first waits for its turn.
func fifo(jobs []job, cores, gpus int) (makespan time.Duration) {
	free := make([]time.Duration, gpus) // when each device is free
	slots := make([]time.Duration, cores/buildCores)
	var turn time.Duration // nothing is measured before what stands before it
	for _, j := range jobs {
		slices.Sort(slots)
		slots[0] += j.build
		slices.Sort(free)
		start := max(free[j.gpus-1], slots[0], turn)
		for i := range j.gpus {
			free[i] = start + j.run
		}
		turn, makespan = start, max(makespan, start+j.run)
	}
	return makespan
}

// replay runs the jobs in the time of a synctest bubble, through the real engine and the real pool.
func replay(t *testing.T, jobs []job, cores, gpus int) time.Duration {
	var nodes []node
	for _, j := range jobs {
		nodes = append(nodes,
			node{at: "wheel." + j.commit, says: "wheel " + j.commit, asks: device.Request{CPUs: buildCores},
				do: takes(j.build), lasts: j.build},
			node{at: "trial." + j.commit, says: "trial", needs: []string{"wheel." + j.commit},
				asks: device.Request{GPUs: device.GPUs{Count: j.gpus}}, do: takes(j.run), lasts: j.run})
	}
	return makespanOf(t, nodes, cores, gpus)
}

// makespanOf applies nodes on a machine of so many cores and devices, and returns how long that takes.
func makespanOf(t *testing.T, nodes []node, cores, gpus int) (makespan time.Duration) {
	return applyOn(t, nodes, cores, gpus, nil)
}

// applyOn is makespanOf with a function that is told of each event.
func applyOn(t *testing.T, nodes []node, cores, gpus int, tell func(engine.Event)) (makespan time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.applies.Emit = tell
		w.store = newMemory(w)
		pool, err := device.NewPool(device.Options{CPUs: cores,
			GPUs: gpu.These(gputest.Devices(gpus, "NVIDIA H100", 80<<30))})
		if err != nil {
			t.Fatal(err)
		}
		w.pool = pool
		begin := time.Now()
		if r := w.apply(nodes...); r.Done != len(nodes) {
			t.Fatalf("%+v", r)
		}
		makespan = time.Since(begin)
	})
	return makespan
}

// The campaign on machines of one to eight devices ends within a twentieth of what no schedule can beat. Measuring
// takes a core, as it does in truth, beside those of the builds.
func TestReplayOfTheCampaign(t *testing.T) {
	needtest.NoRace(t)
	all := campaignJobs(t)
	var table strings.Builder
	fmt.Fprintf(&table, "%6s %6s %8s %12s %12s %12s %8s %8s\n", "cores", "gpus", "commits", "bound", "benchgraph",
		"fifo", "ratio", "fifo")
	for _, machine := range []struct{ cores, gpus int }{ // those of docs/performance.md
		{buildCores, 1}, {buildCores, 8}, {3 * buildCores, 2}, {3 * buildCores, 4}, {3 * buildCores, 8},
	} {
		cores, gpus := machine.cores, machine.gpus
		jobs := slices.DeleteFunc(slices.Clone(all), func(j job) bool { return j.gpus > gpus })
		least, queue := bound(jobs, cores, gpus), fifo(jobs, cores, gpus)
		took := replay(t, jobs, cores+gpus, gpus)
		ratio := took.Seconds() / least.Seconds()
		fmt.Fprintf(&table, "%6d %6d %8d %12s %12s %12s %8.3f %8.3f\n", cores, gpus, len(jobs),
			least.Round(time.Minute),
			took.Round(time.Minute), queue.Round(time.Minute), ratio, queue.Seconds()/least.Seconds())
		if ratio > 1.05 {
			t.Errorf("%d cores, %d devices: %.3f times the bound", cores, gpus, ratio)
		}
	}
	t.Logf("\n%s", table.String())
}
