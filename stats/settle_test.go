package stats

import (
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/stats/settle"
)

func TestAnOpenRowSaysWhatWouldSettleIt(t *testing.T) {
	open := Comparison{Verdict: Verdict{Outcome: Inconclusive, Reason: "too wide",
		Blocks: 7, Detectable: 0.031, Needed: 47}}
	for _, test := range []struct {
		row       Comparison
		open, why string
	}{
		{open, "could have seen ≥ 3.1 %; 40 more blocks would settle it", "too wide"},
		{with(open, func(c *Comparison) {
			c.Settle = &settle.Estimate{Blocks: 40, Took: 126 * time.Minute, GPUHours: 4.32, Money: 17.06}
		}),
			"could have seen ≥ 3.1 %; 40 more blocks, about 2.1 h, 4.3 GPU-hours, a cost of 17.06 would settle it",
			"too wide (40 more blocks, about 2.1 h, 4.3 GPU-hours, a cost of 17.06)"},
		{with(open, func(c *Comparison) { c.Needed = 0 }),
			"could have seen ≥ 3.1 %; not even 10000 blocks would settle an effect that is as large as the margin",
			"too wide; it could have seen ≥ 3.1 %; not even 10000 blocks would settle an effect that is as large as " +
				"the margin"},
		// what was lost on one side is not settled by blocks
		{with(open, func(c *Comparison) { c.Detectable = 0 }), "", "too wide"},
		{with(open, func(c *Comparison) { c.Outcome = Tie }), "", "too wide"},
	} {
		if got := test.row.OpenText(); got != test.open {
			t.Errorf("OpenText %q, want %q", got, test.open)
		}
		if got := test.row.Why(); got != test.why {
			t.Errorf("Why %q, want %q", got, test.why)
		}
	}
}

func with(c Comparison, change func(*Comparison)) Comparison {
	change(&c)
	return c
}
