package remote

import (
	"errors"
	"testing"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/remote/declared"
)

// The last line of a job without a result tells the rule of its failure.
func TestAJobWithoutAResult(t *testing.T) {
	x := &Executor{Options: Options{Executor: declared.Executor{Kind: &declared.Kind{}, Name: "gpu"}}}
	for printed, rule := range map[string]string{
		"":                                      "job_lost", // its script may not have begun
		"boom\n":                                "job_lost",
		"no such module\n" + setupEnded + "1\n": "setup",
		"Error: trial.x: failed\n" + outcomeLost + "denied\n":    "store_unusable",
		"Error: " + outcomeLost + "http://s does not answer\n":   "store_unusable",
		"a candidate prints " + setupEnded + "1\nand more of it": "job_lost",
	} {
		j := &attempt{Executor: x}
		j.printed.end = []byte(printed)
		err := j.lost(job.NewID("7", "k"), job.End{Status: job.Status{State: job.Failed, Node: "n1"}})
		if f, ok := errors.AsType[*engine.Failure](err); !ok || f.Rule != rule || (f.Retry == nil) != (printed == "") {
			t.Errorf("%q: %v", printed, err)
		}
	}
}
