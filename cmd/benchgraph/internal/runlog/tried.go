package runlog

import (
	"slices"
	"time"

	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/report"
)

// Tried is one attempt of which there may be a log.
type Tried struct {
	Start   time.Time
	Log     string // path
	How     string // the attempt ended, for people
	Running bool
}

// Name is what the log's file is named after.
func (t *Tried) Name() string { return report.AttemptOf(t.Log) }

// Tries lists the attempts at a node that this machine's journal has, and those that are running, the oldest first.
// running are the nodes that run now; logOf returns the path of the log of an attempt.
func Tries(j *journal.Journal, address string, running []Node, logOf func(attempt string) string) []Tried {
	var list []Tried
	for _, t := range j.Attempts(address) {
		how := "succeeded in " + view.Duration(t.Duration)
		if t.Failure != nil {
			how = "failed: " + t.Failure.Message
		}
		list = append(list, Tried{t.Start, logOf(t.ID), how, false})
	}
	for _, n := range running {
		if n.Address == address {
			list = append(list, Tried{n.Since, n.Log, "running", true})
		}
	}
	return list
}

// OfStep is Tries, or else the attempt that made the node's result.
func OfStep(j *journal.Journal, st *engine.Step, running []Node, logOf func(attempt string) string) []Tried {
	list := Tries(j, st.Node.Address, running, logOf)
	if meta, ok := st.Stored(); ok && len(list) == 0 && meta.Log != "" {
		list = append(list, Tried{meta.Created, logOf(meta.Log), "made by " + meta.Address, false})
	}
	return list
}

// Voided lists the attempts at the blocks of a benchmark that failed because of its candidate, the oldest first: where
// a block was measured without the candidate afterwards, the benchmark itself has no attempt.
func Voided(j *journal.Journal, st *engine.Step, candidate string, logOf func(attempt string) string) []Tried {
	var list []Tried
	for _, block := range st.Node.Needs {
		for _, t := range j.Attempts(block.Address) {
			if t.Failure != nil && t.Failure.Subject == candidate {
				list = append(list, Tried{t.Start, logOf(t.ID), block.Address + " failed: " + t.Failure.Message, false})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Tried) int { return a.Start.Compare(b.Start) })
	return list
}
