package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/needtest"
)

// Times of the phases of a commit. Those of pulling and of a start were recorded in the campaign. Those of compiling
// are of vLLM's pull requests 11005 and 16848, for a model of 8B parameters.
const (
	pullTime    = 19 * time.Minute       // of an image, on average
	startTime   = 12 * time.Second       // of a server without weights
	readTime    = 400 * time.Millisecond // for each GB of weights: 18 s in all for 8B parameters
	compileTime = 25 * time.Second       // at a start with empty caches
	reloadTime  = 9 * time.Second        // at a start with filled caches: the graph is traced, and its code is read
	layoutTime  = time.Second            // of two containers, and of copies of caches
	fillTime    = 5 * time.Second        // of a fill's own command: some requests
	hashRate    = 3e9                    // bytes a second

	variants  = 3
	gpuMemory = 80e9
	hourGPUs  = 8
	hourCores = 3*buildCores + hourGPUs
	hourScale = 20 // times faster than in truth: the pool is asked again twice a second
)

// use is the purpose for which a device is held. Idle is the time without another use: the node waits for something
// that needs no device.
type use int

const (
	held     use = iota // for anything
	starting            // weights are read to the device, memory is profiled, and graphs are captured
	warming             // requests that are not measured: before a sample, or to fill caches
	measuring
	uses
)

// lapse lets time pass.
func lapse(d time.Duration) { time.Sleep(d / hourScale) }

// account is device time by use.
type account [uses]time.Duration

func (a account) idle() time.Duration { return a[held] - a[starting] - a[warming] - a[measuring] }

func (a account) share(of time.Duration) float64 { return 100 * of.Seconds() / a[held].Seconds() }

// way is a way to measure the campaign.
type way struct {
	name           string
	blocks, passes int  // passes of the command in each start
	caches         bool // are filled by a run that is not measured
	fill           bool // has a command of its own
	checked        bool // mounts are checked before devices are leased

	job func(*hours, job) // measures a commit as one function that holds its devices; nil: benchgraph does
}

// hours is the sum of the device time of commits.
type hours struct {
	way
	mu       sync.Mutex
	accounts map[string]*account      // by commit
	leases   map[string]time.Time     // since when nodes hold devices
	once     sync.Once                // makes lock, in the bubble of the replay
	lock     chan map[string]struct{} // models that were read; one at a time is
}

func (h *hours) spend(j job, on use, d time.Duration) {
	lapse(d)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.accounts[j.commit][on] += d * time.Duration(j.gpus)
}

// start starts one variant and runs the command.
func (h *hours) start(j job, compile time.Duration, passes int) {
	lapse(layoutTime)
	if j.compiles {
		lapse(compile)
	}
	weights := min(float64(j.weights), gpuMemory*float64(j.gpus)) // no more has room, and the replay has all commits
	h.spend(j, starting, startTime+time.Duration(weights/1e9*float64(readTime)))
	h.spend(j, warming, j.warmup)
	h.spend(j, measuring, time.Duration(passes)*j.measure)
	switch {
	case passes == 0 && h.fill:
		h.spend(j, warming, min(fillTime, j.measure))
	case passes == 0:
		h.spend(j, warming, j.measure)
	}
}

// told returns a function that adds up the device time of leases.
func (h *hours) told(gpus map[string]int) func(engine.Event) {
	return func(e engine.Event) {
		_, name, _ := strings.Cut(e.Address, ".")
		commit, _, _ := strings.Cut(name, "#")
		h.mu.Lock()
		defer h.mu.Unlock()
		switch since, leased := h.leases[e.Address]; {
		case e.Type == engine.LeaseGranted:
			h.leases[e.Address] = e.Time
		case e.Type == engine.NodeDone && leased:
			h.accounts[commit][held] += e.Time.Sub(since) * hourScale * time.Duration(gpus[commit])
		}
	}
}

// recorded is a commit as in the campaign: it was prepared in the time that no other use took.
func recorded(h *hours, j job) {
	if !j.measured {
		lapse(j.run)
		return
	}
	begin := time.Now()
	for range variants {
		h.start(j, compileTime, 1)
	}
	lapse(j.run - time.Since(begin)*hourScale)
}

// function is a commit as the campaign's function measures it without failures.
func function(h *hours, j job) {
	lapse(pullTime)
	for range variants {
		h.start(j, compileTime, 1)
	}
}

// readModel makes the first block that mounts a model read it, while the block holds its devices.
func (h *hours) readModel(j job) {
	h.once.Do(func() {
		h.lock = make(chan map[string]struct{}, 1)
		h.lock <- map[string]struct{}{}
	})
	read := <-h.lock
	if _, done := read[j.model]; !done {
		read[j.model] = struct{}{}
		lapse(j.hashing())
	}
	h.lock <- read
}

func (j job) hashing() time.Duration {
	return time.Duration(float64(j.weights) / hashRate * float64(time.Second))
}

// nodes returns the nodes of a commit.
func (h *hours) nodes(j job) []node {
	measures := func(at string, needs []string, do func()) node {
		n := node{at: at + j.commit, says: at + j.commit, needs: needs,
			asks: device.Request{GPUs: device.GPUs{Count: j.gpus}}}
		n.do = func(context.Context, *engine.Env) error {
			do()
			return nil
		}
		return n
	}
	if h.job != nil {
		return []node{measures("function.", nil, func() { h.job(h, j) })}
	}
	wheel := node{at: "wheel." + j.commit, says: "wheel " + j.commit, asks: device.Request{CPUs: buildCores},
		do: takes(j.build / hourScale), lasts: j.build / hourScale}
	all, before, compile := []node{wheel}, []string{wheel.at}, compileTime
	if h.caches && j.compiles {
		compile = reloadTime
		for i := range variants {
			n := measures("fill.", []string{wheel.at}, func() { h.start(j, compileTime, 0) })
			n.at = fmt.Sprintf("%s#%d", n.at, i)
			n.says = n.at
			all, before = append(all, n), append(before, n.at)
		}
	}
	for i := range h.blocks {
		n := measures("trial.", before, func() {
			if !h.checked {
				h.readModel(j)
			}
			for range variants {
				h.start(j, compile, h.passes)
			}
		})
		n.at = fmt.Sprintf("%s#%d", n.at, i)
		n.says = n.at
		if i == 0 { // the pilot
			before = append(slices.Clip(before), n.at)
		}
		all = append(all, n)
	}
	if h.checked && j.weights > 0 {
		check := engine.Check{Name: "mount." + j.model, Run: func(context.Context) { lapse(j.hashing()) }}
		for i := range all[1:] {
			all[1+i].checks = []engine.Check{check}
		}
	}
	return all
}

// measureIn applies the campaign in one way, and returns an account for each commit.
func measureIn(t *testing.T, way way, jobs []job) (accounts []account) {
	h := &hours{way: way, accounts: map[string]*account{}, leases: map[string]time.Time{}}
	gpus, nodes := map[string]int{}, []node(nil)
	for _, j := range jobs {
		gpus[j.commit], h.accounts[j.commit] = j.gpus, &account{}
		nodes = append(nodes, h.nodes(j)...)
	}
	applyOn(t, nodes, hourCores, hourGPUs, h.told(gpus))
	for _, j := range jobs {
		accounts = append(accounts, *h.accounts[j.commit])
	}
	return accounts
}

// lines writes two lines of the table for a way: one for all commits, and one for commits that are measured in less
// than ten minutes. Three commits, which get one request a second, take most hours of the campaign.
func (w way) lines(table *[2]strings.Builder, accounts []account, jobs []job) (idle float64) {
	for i := range table {
		var sum account
		var shares []float64
		for k, a := range accounts {
			if i > 0 && jobs[k].measure > 10*time.Minute {
				continue
			}
			for on, d := range a {
				sum[on] += d
			}
			shares = append(shares, a.share(a.idle()))
		}
		slices.Sort(shares)
		if table[i].Len() == 0 {
			fmt.Fprintf(&table[i], "%-26s %6s %7s %9s %8s %7s %7s %8s %7s %7s %7s\n",
				fmt.Sprint(len(shares), " commits"), "passes", "held", "measuring", "warm-up", "start", "idle",
				"start %", "idle %", "median", "worst")
		}
		fmt.Fprintf(&table[i], "%-26s %6d %7.1f %9.1f %8.1f %7.1f %7.1f %8.1f %7.1f %7.1f %7.1f\n", w.name,
			w.blocks*w.passes, sum[held].Hours(), sum[measuring].Hours(), sum[warming].Hours(), sum[starting].Hours(),
			sum.idle().Hours(), sum.share(sum[starting]), sum.share(sum.idle()), shares[len(shares)/2],
			shares[len(shares)-1])
		idle = max(idle, sum.share(sum.idle()))
	}
	return idle
}

// Devices of benchgraph's nodes are idle for less than a tenth of the time in which they are held; fewer starts mean
// less idle time.
func TestReplayOfGPUHours(t *testing.T) {
	needtest.NoRace(t)
	var table [2]strings.Builder
	jobs := campaignJobs(t)
	for _, way := range []way{
		{name: "as recorded", blocks: 1, passes: 1, job: recorded},
		{name: "one function a commit", blocks: 1, passes: 1, job: function},
		{name: "leases for blocks", blocks: 12, passes: 1},
		{name: "mounts checked before", blocks: 12, passes: 1, checked: true},
		{name: "and caches", blocks: 12, passes: 1, checked: true, caches: true},
		{name: "and fills of their own", blocks: 12, passes: 1, checked: true, caches: true, fill: true},
		{name: "and repeat = 3", blocks: 4, passes: 3, checked: true, caches: true, fill: true},
		{name: "repeat = 3 without caches", blocks: 4, passes: 3, checked: true},
	} {
		if idle := way.lines(&table, measureIn(t, way, jobs), jobs); way.caches && idle > 10 {
			t.Errorf("%s: %.1f %% idle", way.name, idle)
		}
	}
	t.Logf("\n%s\n%s", &table[0], &table[1])
}
