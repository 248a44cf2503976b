package findings

import (
	"time"

	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/stats/settle"
)

// Settled returns the rows and pairs of findings. Each open one has an estimate of the blocks that would settle it,
// each block as long as the mean of the measured ones of the same benchmark and commit. price returns the cost of an
// hour of a device by the classes of the machines that measured; 0: unknown.
func (f *Findings) Settled(price func(hardware []string) float64) (rows, pairs []stats.Comparison) {
	type group struct{ benchmark, commit string }
	took, gpus, blocks := map[group]time.Duration{}, map[group]time.Duration{}, map[group]int{}
	for _, s := range f.Spent {
		if at := (group{s.Benchmark, s.Commit}); s.Block && !s.Failed && s.Took > 0 {
			took[at] += s.Took
			gpus[at] += s.Took * time.Duration(s.GPUs)
			blocks[at]++
		}
	}
	classes := f.Classes()
	fill := func(list []stats.Comparison) []stats.Comparison {
		filled := append([]stats.Comparison{}, list...)
		for i := range filled {
			c := &filled[i]
			if c.Outcome != stats.Inconclusive || c.Needed <= c.Blocks {
				continue
			}
			c.Settle = &settle.Estimate{Blocks: c.Needed - c.Blocks}
			at := group{c.Benchmark, c.Commit}
			if n := blocks[at]; n > 0 {
				c.Settle.Took = took[at] / time.Duration(n) * time.Duration(c.Settle.Blocks)
				c.Settle.GPUHours = gpus[at].Hours() / float64(n) * float64(c.Settle.Blocks)
				c.Settle.Money = c.Settle.GPUHours * price(classes[[2]string{at.benchmark, at.commit}])
			}
		}
		return filled
	}
	return fill(f.Comparisons), fill(f.Pairs)
}

// Classes are the classes of the machines that measured, by benchmark and commit.
func (f *Findings) Classes() map[[2]string][]string {
	classes := map[[2]string][]string{}
	seen := map[[3]string]bool{}
	for _, m := range f.Measurements {
		if id := [3]string{m.Benchmark, m.Commit, m.Hardware}; !seen[id] {
			seen[id] = true
			at := [2]string{m.Benchmark, m.Commit}
			classes[at] = append(classes[at], m.Hardware)
		}
	}
	return classes
}
