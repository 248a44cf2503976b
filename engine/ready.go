package engine

import (
	"cmp"

	"github.com/benchgraph/benchgraph/device"
)

// byTurn returns the order in which ready steps start: by turn, then by the longest remaining path in seconds, then by
// position in the graph. remains is by node.
func byTurn(remains []float64) func(s, t *Step) int {
	return func(s, t *Step) int {
		i, j := s.Node.id, t.Node.id
		return cmp.Or(cmp.Compare(s.Node.Turn, t.Node.Turn), cmp.Compare(remains[j], remains[i]), cmp.Compare(i, j))
	}
}

// remaining returns the priority of each node: the length in seconds of the longest path from the start of the node to
// the end of the plan. A path with a wide node is longer by the time in which all devices could run the narrower nodes:
// a wide node is hard to place, and starts at once at the beginning; but a long chain of narrow nodes comes first.
//
// Nobody knows which chain is long where durations are unknown. The path of a node with devices is then shorter by
// that time: the narrow chains begin first, so that wider nodes run beside the longest of them. A path with a node that
// needs more than half of the devices stays longer, for such a node runs beside few others.
func remaining(p *Plan, pool device.Pool) []float64 {
	seconds, width := make([]float64, len(p.Steps)), make([]int, len(p.Steps))
	work := []float64{0} // device-seconds, by the number of devices of a node
	for i := len(p.Steps) - 1; i >= 0; i-- {
		for _, user := range p.Graph.users[i] {
			seconds[i], width[i] = max(seconds[i], seconds[user]), max(width[i], width[user])
		}
		if s := &p.Steps[i]; s.Action == Run {
			alone, count := max(s.Estimate.Seconds(), 1), s.Node.Resources.GPUs.Count
			seconds[i], width[i] = seconds[i]+alone, max(width[i], count)
			work = append(work, make([]float64, max(0, count+1-len(work)))...)
			work[count] += alone * float64(count)
		}
	}
	narrower, devices := 0.0, 1
	if len(work) > 2 { // otherwise no node is narrower; and the pool would open the driver
		devices = max(1, pool.Free(device.Request{GPUs: device.GPUs{Count: 1}}).GPUs)
	}
	for wide, own := range work {
		work[wide], narrower = narrower/float64(devices), narrower+own
	}
	for i, n := range width {
		s := &p.Steps[i]
		if s.Estimate == 0 && s.Node.Resources.GPUs.Count > 0 && n <= devices/2 {
			seconds[i] -= work[n]
		} else {
			seconds[i] += work[n]
		}
	}
	return seconds
}
