package device

import (
	"math"
	"math/bits"
	"slices"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/link"
)

// choose returns n of the free devices: the set with the best connections, judged by its worst link and then by the
// sum of its links. Of equal sets it returns the one that leaves better connected devices to others, and then the one
// with the lowest indices. links may be nil if the connections are not known.
func choose(free []gpu.Device, n int, links func(a, b gpu.Device) link.Link) []gpu.Device {
	if n >= len(free) || n == 0 || links == nil || len(free) > maxChoice {
		return free[:min(n, len(free))]
	}
	c := newChoice(free, links)
	if c.even {
		return free[:n]
	}
	best := c.best(n)
	chosen := make([]gpu.Device, 0, n)
	for i, d := range free {
		if best&(1<<i) != 0 {
			chosen = append(chosen, d)
		}
	}
	return chosen
}

// maxChoice is the largest number of devices for which sets are compared: no machine has more whole devices.
const maxChoice = 16

// choice holds the scores of the links between devices.
type choice struct {
	n     int
	score [maxChoice][maxChoice]int
	even  bool // all links have the same score
}

func newChoice(free []gpu.Device, links func(a, b gpu.Device) link.Link) *choice {
	c := &choice{n: len(free), even: true}
	for i, a := range free {
		for j, b := range free[:i] {
			l := links(a, b)
			s := 100*l.NVLinks + 10*int(l.PCIe)
			if a.NUMA == b.NUMA && a.NUMA >= 0 {
				s++
			}
			c.score[i][j], c.score[j][i] = s, s
			c.even = c.even && s == c.score[1][0]
		}
	}
	return c
}

// best returns the best set of n devices, as bits.
func (c *choice) best(n int) (best uint) {
	first := true
	var most [3]int
	for set := range uint(1) << c.n {
		if bits.OnesCount(set) != n {
			continue
		}
		if v := c.value(set); first || slices.Compare(v[:], most[:]) > 0 {
			best, most, first = set, v, false
		}
	}
	return best
}

// value returns the worst link inside a set, the sum of the links inside, and the negative sum of the links to other
// devices.
func (c *choice) value(set uint) [3]int {
	worst, inside, cut := math.MaxInt, 0, 0
	for i := range c.n {
		for j := range i {
			s := c.score[i][j]
			switch in, other := set>>i&1, set>>j&1; {
			case in&other == 1:
				worst, inside = min(worst, s), inside+s
			case in != other:
				cut += s
			}
		}
	}
	return [3]int{worst, inside, -cut}
}
