// Package stats turns samples into verdicts, and verdicts into a ledger whose sums are checked.
package stats

import "github.com/benchgraph/benchgraph/stats/settle"

// Outcome is the result of one candidate in one comparison. Each candidate has exactly one.
type Outcome string

// The outcomes, in the order in which they are decided: a candidate has the first one that holds.
const (
	Skipped       Outcome = "skipped"        // declared in the file
	NoPatch       Outcome = "no_patch"       // its variant's optional patch does not exist
	Infeasible    Outcome = "infeasible"     // no device can ever serve it
	NoBaseline    Outcome = "no_baseline"    // the baseline has no valid measurement
	BuildFailed   Outcome = "build_failed"   // its artefact could not be built
	Failed        Outcome = "failed"         // it ran and failed by itself while the baseline succeeded
	Wrong         Outcome = "wrong"          // its outputs do not agree with the baseline's
	Infra         Outcome = "infra"          // only transient or infra failures, attempts used up
	NotComparable Outcome = "not_comparable" // its methodology differs from the baseline's
	NotRun        Outcome = "not_run"        // no sample has been taken
	Win           Outcome = "win"            // better by the margin or more
	Loss          Outcome = "loss"           // worse by the margin or more
	Tie           Outcome = "tie"            // equal within the margin
	Inconclusive  Outcome = "inconclusive"   // the blocks decide neither win, loss nor tie
)

// Comparison is one row of a compare's ledger: one metric of one candidate against one reference, with the result of
// its blocks. Every row has an outcome.
type Comparison struct {
	Compare   string `json:"compare"`   // name of the compare block
	Benchmark string `json:"benchmark"` // name of the benchmark block
	Commit    string `json:"commit"`
	Candidate string `json:"candidate"` // commit/variant
	Against   string `json:"against"`   // commit/variant
	Metric    string `json:"metric"`
	Primary   bool   `json:"primary"`
	Verdict
	// P after Benjamini-Hochberg over commits; 0: not in a headline list
	Q           float64          `json:"q,omitempty"`
	Unit        string           `json:"unit,omitempty"` // of Value and AgainstValue
	Methodology string           `json:"methodology"`    // digest of the candidate's methodology
	Attempts    *Attempts        `json:"attempts"`       // at the blocks; nil: not known
	Settle      *settle.Estimate `json:"settle"`         // for the blocks that Needed asks for; nil: not open
}
