package findings

import (
	"slices"
	"time"

	"github.com/benchgraph/benchgraph/stats"
	"github.com/benchgraph/benchgraph/stats/settle"
)

// Settled returns the rows and pairs of findings. Each open one has an estimate of the blocks that would settle it, at
// the mean cost of the measured blocks of the same benchmark and commit. price returns the cost of an hour of a device
// by the classes of the machines that measured; 0: unknown.
func (f *Findings) Settled(price func(hardware []string) float64) (rows, pairs []stats.Comparison) {
	took, gpus, blocks := map[BlocksOf]time.Duration{}, map[BlocksOf]time.Duration{}, map[BlocksOf]int{}
	for _, s := range f.Spent {
		if at := (BlocksOf{s.Benchmark, s.Commit}); s.Block && !s.Failed && s.Took > 0 {
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
			at := BlocksOf{c.Benchmark, c.Commit}
			if n := blocks[at]; n > 0 {
				c.Settle.Took = took[at] / time.Duration(n) * time.Duration(c.Settle.Blocks)
				c.Settle.GPUHours = gpus[at].Hours() / float64(n) * float64(c.Settle.Blocks)
				c.Settle.Money = c.Settle.GPUHours * price(classes[at])
			}
		}
		return filled
	}
	return fill(f.Comparisons), fill(f.Pairs)
}

// BlocksOf identifies the blocks of one benchmark and commit.
type BlocksOf struct{ Benchmark, Commit string }

// Classes returns the classes of the machines that measured each benchmark and commit.
func (f *Findings) Classes() map[BlocksOf][]string {
	classes := map[BlocksOf][]string{}
	for _, m := range f.Measurements {
		at := BlocksOf{m.Benchmark, m.Commit}
		if !slices.Contains(classes[at], m.Hardware) {
			classes[at] = append(classes[at], m.Hardware)
		}
	}
	return classes
}
