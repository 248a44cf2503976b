package device

import (
	"math"
	"math/bits"
	"slices"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/device/gpu/link"
)

// choose picks n of the devices that are free, lowest index first among equals: a set whose members are connected as
// well as can be, by the worst of its links, then by all of them; and, of equal sets, the one that leaves better
// connected devices to others. Links may be nil: nothing is known of them.
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

// maxChoice is the number of devices above which sets are not compared: no machine has more whole ones.
const maxChoice = 16

// choice is how well each two of some devices are connected.
type choice struct {
	n     int
	score [maxChoice][maxChoice]int
	even  bool // all alike
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

// best compares all sets of n devices, as bits.
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

// value is the worst link inside a set, the sum of those inside, and, as a cost, the sum of those to the rest.
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
