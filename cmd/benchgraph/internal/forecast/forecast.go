// Package forecast predicts the time, the GPU hours and the cost of a plan.
package forecast

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/campaign/results"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/engine"
)

// Forecast is the prediction for a plan, as far as durations are known.
type Forecast struct {
	Build    int           // nodes to run that make something
	Measure  int           // nodes to run that measure: blocks
	Read     int           // nodes to run that only read measurements
	Unknown  int           // nodes to run of unknown duration, which count as 0
	Wall     time.Duration // from start to end, without the time that jobs are queued
	GPUHours float64
	Cost     float64 // 0: no price is declared for the devices

	Executors []Share // the jobs on clusters, by executor of the plan

	Machine string            // another machine that the plan is for; empty: this one, or those of several executors
	Waits   map[string]string // by address: why this machine cannot run a node of that plan

	Beside      []string             // benchmarks without quiet whose blocks may run beside each other
	Resolutions []results.Resolution // of benchmarks with blocks to run, as far as their noise is known
}

// Share is the part of a plan that runs as jobs of one executor.
type Share struct {
	Name     string  `json:"name"`
	Machine  string  `json:"machine"` // the nodes of its jobs are like this machine of the file
	Jobs     int     `json:"jobs"`
	MaxJobs  int     `json:"max_jobs"` // at once
	GPUHours float64 `json:"gpu_hours"`
	Cost     float64 `json:"cost"` // 0: no price is declared for the devices

	Devices []gpu.Device  `json:"-"` // of that machine
	took    time.Duration // of all jobs, one after the other
}

// Prices has the price of an hour of a device, by the device's name.
type Prices map[string]float64

// Machine is where a plan runs: this machine, and the jobs on clusters.
type Machine struct {
	CPUs      int
	Devices   []gpu.Device
	Executors []Share // without forecasts yet
}

// Predict forecasts a plan. The wall time is the longest path, or, if that is more, the work of all cores, of all
// devices or of all slots for jobs, divided by their number; quiet nodes run alone.
func Predict(p *engine.Plan, m Machine, prices Prices) Forecast {
	f := Forecast{Executors: slices.Clone(m.Executors)}
	jobs := map[string]*Share{}
	for i := range f.Executors {
		jobs[f.Executors[i].Name] = &f.Executors[i]
	}
	var alone, shared, onDevices time.Duration
	blocks := 0
	path := map[*engine.Node]time.Duration{} // of nodes to run, and of nodes that wait for one
	for i := range p.Steps {
		s := &p.Steps[i]
		var longest time.Duration
		for _, dep := range Waits(s.Node) {
			longest = max(longest, path[dep])
		}
		if s.Action != engine.Run {
			if longest > 0 {
				path[s.Node] = longest
			}
			continue
		}
		path[s.Node] = longest + s.Estimate
		f.Wall = max(f.Wall, path[s.Node])
		f.count(s)
		q, devices := s.Node.Resources, m.Devices
		hours := s.Estimate.Hours() * float64(q.GPUs.Count)
		x := jobs[q.Queue]
		if x != nil {
			devices = x.Devices
		}
		cost := hours * price(q.GPUs, devices, prices)
		f.GPUHours += hours
		f.Cost += cost
		switch {
		case x != nil:
			x.Jobs++
			x.took += s.Estimate
			x.GPUHours += hours
			x.Cost += cost
		case q.Quiet:
			alone += s.Estimate
		default:
			shared += s.Estimate * time.Duration(min(q.Takes(), m.CPUs))
			onDevices += s.Estimate * time.Duration(q.GPUs.Count)
			if s.Node.Kind == "trial" && q.GPUs.Count == 0 && 2*q.Takes() <= m.CPUs {
				blocks++
				f.Beside = append(f.Beside, benchmarkOf(s.Node.Address))
			}
		}
	}
	if slices.Sort(f.Beside); blocks < 2 {
		f.Beside = nil
	}
	f.Beside = slices.Compact(f.Beside)
	f.Wall = max(f.Wall, alone+shared/time.Duration(max(m.CPUs, 1)),
		alone+onDevices/time.Duration(max(len(m.Devices), 1)))
	for _, x := range f.Executors {
		f.Wall = max(f.Wall, x.took/time.Duration(max(x.MaxJobs, 1)))
	}
	return f
}

// benchmarkOf returns the address of the benchmark of a block.
func benchmarkOf(trial string) string {
	block, _, _ := strings.Cut(trial, "[")
	return "benchmark." + strings.TrimPrefix(block, "trial.")
}

func (f *Forecast) count(s *engine.Step) {
	switch {
	case ReadsOnly(s.Node.Kind):
		f.Read++
		return
	case s.Node.Kind == "trial":
		f.Measure++
	default:
		f.Build++
	}
	if s.Estimate == 0 {
		f.Unknown++
	}
}

// ReadsOnly reports whether nodes of a kind only read results, which takes a moment.
func ReadsOnly(kind string) bool { return kind == "benchmark" || kind == "compare" || kind == "report" }

// price returns the price of an hour of a device that may serve the request: the highest price of these devices, or
// else of any device.
func price(q device.GPUs, devices []gpu.Device, prices Prices) float64 {
	if q.Count == 0 {
		return 0
	}
	here, anywhere := 0.0, 0.0
	for _, d := range devices {
		if q.Suits(d) {
			here = max(here, prices[d.Name])
		}
	}
	for name, p := range prices {
		if q.Model == nil || q.Model.MatchString(name) {
			anywhere = max(anywhere, p)
		}
	}
	return cmp.Or(here, anywhere)
}

// CriticalPath returns the longest chain of steps to run, by their estimates. A step of unknown duration counts as a
// second, as in the schedule.
func CriticalPath(p *engine.Plan) []*engine.Step {
	length := map[*engine.Node]time.Duration{}
	before := map[*engine.Node]*engine.Node{}
	var last *engine.Node
	for i := range p.Steps {
		st := &p.Steps[i]
		for _, dep := range Waits(st.Node) {
			if length[dep] > length[st.Node] {
				length[st.Node], before[st.Node] = length[dep], dep
			}
		}
		if st.Action == engine.Run {
			length[st.Node] += max(st.Estimate, time.Second)
		}
		if length[st.Node] > length[last] {
			last = st.Node
		}
	}
	var path []*engine.Step
	for n := last; n != nil; n = before[n] {
		if st, ok := p.Step(n.Address); ok && st.Action == engine.Run {
			path = append(path, st)
		}
	}
	slices.Reverse(path)
	return path
}

// Waits returns the nodes that a node waits for.
func Waits(n *engine.Node) []*engine.Node { return slices.Concat(n.Needs, n.Order, n.After) }
