package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
)

// Forecast is what a plan will take, as far as it is known.
type Forecast struct {
	Build    int           // nodes to run that make something
	Measure  int           // nodes to run that measure or judge
	Unknown  int           // nodes to run whose duration is not known, and that are counted with none
	Wall     time.Duration // from start to end on this machine
	GPUHours float64
	Cost     float64 // 0: no price is declared for the devices

	Machine string            // another machine that the plan is for; empty: this one
	Waits   map[string]string // by address: why this machine cannot run a node of that plan

	Resolutions []campaign.Resolution // of benchmarks of which blocks are to be run, as far as their noise is known
}

// Prices are what an hour of a device costs, by its name.
type Prices map[string]float64

// Predict forecasts a plan on a machine with so many cores. The wall time is the longest path, or what all the cores or
// all the devices together need if that is more; quiet nodes run alone.
func Predict(p *engine.Plan, cpus int, devices []device.Device, prices Prices) Forecast {
	var f Forecast
	var alone, shared, onDevices time.Duration
	path := map[*engine.Node]time.Duration{} // of nodes before which something is to be run, or that are
	for i := range p.Steps {
		s := &p.Steps[i]
		var longest time.Duration
		for _, list := range [][]*engine.Node{s.Node.Needs, s.Node.Order, s.Node.After} {
			for _, dep := range list {
				longest = max(longest, path[dep])
			}
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
		q := s.Node.Resources
		if q.Quiet {
			alone += s.Estimate
		} else {
			shared += s.Estimate * time.Duration(min(q.Takes(), cpus))
			onDevices += s.Estimate * time.Duration(q.GPUs.Count)
		}
		hours := s.Estimate.Hours() * float64(q.GPUs.Count)
		f.GPUHours += hours
		f.Cost += hours * price(q.GPUs, devices, prices)
	}
	f.Wall = max(f.Wall, alone+shared/time.Duration(max(cpus, 1)), alone+onDevices/time.Duration(max(len(devices), 1)))
	return f
}

func (f *Forecast) count(s *engine.Step) {
	switch {
	case readsOnly(s.Node.Kind):
		f.Measure++
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

// readsOnly says whether nodes of a kind only read what is there, which takes a moment.
func readsOnly(kind string) bool { return kind == "benchmark" || kind == "compare" || kind == "report" }

// price returns the cost of an hour of a device that may serve the request: of a device of this machine, or else of any
// device with a price. Of several prices, the highest counts.
func price(q device.GPUs, devices []device.Device, prices Prices) float64 {
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
	if here > 0 {
		return here
	}
	return anywhere
}

// String is the forecast in a few words, empty when nothing is known: about 31 GPU-h, $122.
func (f Forecast) String() string {
	var parts []string
	switch {
	case f.GPUHours > 0:
		parts = append(parts, figure(f.GPUHours)+" GPU-h")
	case f.Wall > 0:
		parts = append(parts, Duration(roughly(f.Wall)))
	}
	if f.Cost > 0 {
		parts = append(parts, "$"+figure(f.Cost))
	}
	if len(parts) == 0 {
		return ""
	}
	word := "about "
	if f.Unknown > 0 {
		word = fmt.Sprintf("at least (%s of unknown duration) ", Number(f.Unknown))
	}
	return word + strings.Join(parts, ", ")
}

// roughly leaves out what no forecast knows.
func roughly(d time.Duration) time.Duration {
	switch {
	case d > time.Hour:
		return d.Round(time.Minute)
	case d > time.Second:
		return d.Round(time.Second)
	}
	return d
}

// CriticalPath is the longest chain of steps to run, by their estimates; a step of unknown duration counts a second, as
// the schedule counts it.
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

// Waits are all that a node waits for.
func Waits(n *engine.Node) []*engine.Node { return slices.Concat(n.Needs, n.Order, n.After) }

// mostNamed is how many nodes of a path are named in a line.
const mostNamed = 6

// critical says in a line which chain an apply cannot be shorter than; empty when there is nothing to say.
func (f Forecast) critical(p *engine.Plan) string {
	if f.Wall == 0 {
		return ""
	}
	path := CriticalPath(p)
	if len(path) < 2 {
		return ""
	}
	var names []string
	var took time.Duration
	for i, s := range path {
		took += s.Estimate
		if i < mostNamed-1 || i == len(path)-1 {
			names = append(names, s.Node.Address)
		} else if i == mostNamed-1 {
			names = append(names, "…")
		}
	}
	if took == 0 {
		return ""
	}
	return fmt.Sprintf("Critical path (%s of about %s): %s", Duration(roughly(took)), Duration(roughly(f.Wall)),
		strings.Join(names, " → "))
}
