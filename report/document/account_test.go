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
