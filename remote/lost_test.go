package remote

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache/shared/bucket"
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
		j.printed.End = []byte(printed)
		err := j.lost(job.NewID("7", "k"), job.End{Status: job.Status{State: job.Failed, Node: "n1"}})
		if f, ok := errors.AsType[*engine.Failure](err); !ok || f.Rule != rule || (f.Retry == nil) != (printed == "") {
			t.Errorf("%q: %v", printed, err)
		}
	}
}

// The remedy for a store that cannot be used is that for its reason, on the node and on this machine. Other errors of
// an attempt stay as they are.
func TestRemediesOfAStore(t *testing.T) {
	x := &Executor{Options: Options{Executor: declared.Executor{Kind: &declared.Kind{}, Name: "gpu"}}}
	for _, of := range []struct {
		err    error
		remedy string // on this machine
		node   string
	}{
		{bucket.ErrFull, "Give the store more room", "Give the store more room"},
		{bucket.ErrClock, "Set the clock", "Set the clock"},
		{bucket.ErrNoBucket, "Make the bucket", "Make the bucket"},
		{bucket.ErrDenied, "Set AWS_ACCESS_KEY_ID", "give nodes credentials"},
		{errors.New("boom"), "", "give nodes credentials"},
	} {
		err := fmt.Errorf("input x: %w", of.err)
		f, ok := errors.AsType[*engine.Failure](unusable(err))
		if ok != (of.remedy != "") || ok && (f.Rule != "store_unusable" || !strings.HasPrefix(f.Remedy, of.remedy)) {
			t.Errorf("%v: %+v", of.err, f)
		}
		j := &attempt{Executor: x}
		j.printed.End = []byte("Error: " + outcomeLost + of.err.Error() + ": its words\n")
		lost := j.lost(job.NewID("7", "k"), job.End{Status: job.Status{State: job.Failed, Node: "n1"}})
		if f, ok := errors.AsType[*engine.Failure](lost); !ok || !strings.HasPrefix(f.Remedy, of.node) {
			t.Errorf("on a node, %v: %+v", of.err, f)
		}
	}
}
