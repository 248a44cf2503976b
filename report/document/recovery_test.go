package document

import (
	"testing"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/stats"
)

// No apply and no build repairs a patch that does not apply, whether preflight or the checkout refused it.
func TestRefusedPatch(t *testing.T) {
	row := stats.Comparison{Commit: "c", Candidate: "c/agent", Verdict: stats.Verdict{Outcome: stats.BuildFailed}}
	for _, failures := range [][]Failed{nil, {{Commit: "c", Candidate: "c/agent", Failure: failure.Failure{
		Class: failure.Permanent, Rule: "patch_refused", Stage: "checkout"}}}} {
		if way, _ := wayOut(row, failures); way != byNothing {
			t.Errorf("%q by %+v", way, failures)
		}
	}
}

// The way out is not that of somebody else, and no way that leads nowhere.
func TestWayOut(t *testing.T) {
	broken := []Failed{{Commit: "c", Candidate: "c/base", Failure: failure.Failure{Class: failure.Permanent}}}
	for want, v := range map[string]stats.Verdict{
		byBase:   {Outcome: stats.NoBaseline},
		byMetric: {Outcome: stats.Inconclusive, Reason: "no verdict: block 3 holds the value -2" + stats.NoLogarithm},
		byBlocks: {Outcome: stats.Inconclusive, Reason: "no verdict: 0 blocks"},
	} {
		row := stats.Comparison{Commit: "c", Candidate: "c/new", Against: "c/base", Verdict: v}
		if way, _ := wayOut(row, broken); way != want {
			t.Errorf("%s: %q", want, way)
		}
	}
}
