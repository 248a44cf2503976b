package doubt

import (
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/findings/group"
	"github.com/benchgraph/benchgraph/findings/sample"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/stats"
)

// A server that was ready late may have computed its answers. The limit depends on the other server and on the duration
// of the command.
func TestReady(t *testing.T) {
	side := func(blocks int, ready, took time.Duration) *group.Standing {
		s := &group.Standing{Member: &group.Member{Bench: &hclspec.Benchmark{}}}
		for block := 1; block <= blocks; block++ {
			s.Evidence = append(s.Evidence, sample.Evidence{Block: block, Ready: ready, Took: took})
		}
		return s
	}
	const second = time.Second
	for _, c := range []struct {
		name        string
		own, theirs time.Duration
		took        time.Duration
		blocks      int
		outcome     stats.Outcome
		doubted     bool
	}{
		{name: "half of a short command", own: 6 * second, theirs: second, took: 10 * second, doubted: true},
		{name: "less than half of it", own: 5 * second, theirs: second, took: 10 * second},
		{name: "30 s of a long command", own: 70 * second, theirs: 40 * second, took: time.Hour, doubted: true},
		{name: "30 s of a long start", own: 130 * second, theirs: 100 * second, took: time.Hour},
		{name: "the start of processes", own: second, theirs: second / 10, took: second / 10},
		{name: "no win", own: 90 * second, theirs: second, took: second, outcome: stats.Loss},
		{name: "few blocks", own: 90 * second, theirs: second, took: second, blocks: 3},
		{name: "an earlier version", own: 90 * second, took: second},
		{name: "a fast one", own: second, theirs: 90 * second, took: second},
	} {
		row := stats.Comparison{}
		if row.Outcome = c.outcome; row.Outcome == "" {
			row.Outcome = stats.Win
		}
		if c.blocks == 0 {
			c.blocks = stats.FewestBlocks
		}
		got := Ready(row, side(c.blocks, c.own, c.took), side(c.blocks, c.theirs, c.took))
		if (len(got) > 0) != c.doubted {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
