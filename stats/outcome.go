// Package stats turns samples into verdicts, and verdicts into a ledger whose sums are checked.
package stats

import (
	"cmp"

	"github.com/benchgraph/benchgraph/stats/settle"
)

// Outcome is the result of one candidate in one comparison. Each candidate has exactly one.
type Outcome string

// The outcomes, in the order in which they are decided: the first that holds is the candidate's.
const (
	Skipped       Outcome = "skipped"        // declared in the file
	NoPatch       Outcome = "no_patch"       // its variant's optional patch does not exist
	Infeasible    Outcome = "infeasible"     // no device can ever serve it
	NoBaseline    Outcome = "no_baseline"    // the baseline has no valid measurement
	BuildFailed   Outcome = "build_failed"   //
	Failed        Outcome = "failed"         // it ran and failed by itself while the baseline succeeded
	Wrong         Outcome = "wrong"          // what it computed does not agree with the baseline
	Infra         Outcome = "infra"          // only transient or infra failures, attempts used up
	NotComparable Outcome = "not_comparable" // its methodology differs from the baseline's
	NotRun        Outcome = "not_run"        //
	Win           Outcome = "win"            //
	Loss          Outcome = "loss"           //
	Tie           Outcome = "tie"            //
	Inconclusive  Outcome = "inconclusive"   //
)

// Comparison is one row of a compare's ledger: one metric of one candidate against one reference. Effect, Low, High and
// P are meaningful only if Blocks is at least 2.
type Comparison struct {
	Compare   string  `json:"compare"`   // name of the compare block
	Benchmark string  `json:"benchmark"` // name of the benchmark block
	Commit    string  `json:"commit"`
	Candidate string  `json:"candidate"` // commit/variant
	Against   string  `json:"against"`   // commit/variant
	Metric    string  `json:"metric"`
	Primary   bool    `json:"primary"`
	Outcome   Outcome `json:"outcome"`
	Reason    string  `json:"reason,omitempty"`
	Effect    float64 `json:"effect"` // relative, positive is better: 0.05 is 5 % better
	// how much better whatever ran first in its block was, relative; figures are without it
	First float64 `json:"first,omitempty"`
	// slope of the ln ratios on those of the canary before the samples; figures are without it
	Canary     float64 `json:"canary,omitempty"`
	Low        float64 `json:"low"` // bounds of the confidence interval, relative
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence,omitempty"` // of that interval
	Blocks     int     `json:"blocks"`               // valid blocks that the figures rest on
	// the last look that the blocks have reached, from 1; 0: none
	Look  int     `json:"look,omitempty"`
	Looks []int   `json:"looks,omitempty"` // numbers of blocks at which is judged
	P     float64 `json:"p"`               // exact sign-flip test, after Holm within the commit
	// t test, after Holm likewise; above zero where it is known
	PT float64 `json:"p_t,omitempty"`
	// after Benjamini-Hochberg over commits; 0: not in a headline list
	Q             float64  `json:"q,omitempty"`
	HodgesLehmann float64  `json:"hodges_lehmann,omitempty"` // relative
	Value         float64  `json:"value,omitempty"`          // geometric mean of the candidate's samples, in Unit
	AgainstValue  float64  `json:"against_value,omitempty"`  // likewise of the other's
	Unit          string   `json:"unit,omitempty"`
	Better        string   `json:"better,omitempty"` // higher or lower
	Tie           float64  `json:"tie,omitempty"`    // the margin that was used
	Methodology   string   `json:"methodology"`      // digest of what both have in common
	Caveats       []Caveat `json:"caveats"`
	// Attempts counts the attempts at the blocks; nil: not known.
	Attempts *Attempts `json:"attempts"`
	// Detectable is the smallest relative effect that the blocks could have distinguished from zero in four of five
	// cases. It is above zero; 0: unknown.
	Detectable float64 `json:"detectable"`
	// Needed is how many blocks would settle an inconclusive row, by the noise that was seen; 0: not known.
	Needed int `json:"needed,omitempty"`
	// Settle is what the blocks that Needed asks for would take; nil: not known, or nothing is open.
	Settle *settle.Estimate `json:"settle"`
	// NoRatio says that one side is zero in all blocks: there is no Effect, Low and High.
	NoRatio bool `json:"no_ratio,omitempty"`
}

// TestP is the p of the test that decides, which reports show: PT, or P where only one test was made.
func (c Comparison) TestP() float64 { return cmp.Or(c.PT, c.P) }
