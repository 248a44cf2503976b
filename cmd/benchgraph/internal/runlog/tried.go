package runlog

import (
	"slices"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/report/document"
)

// Tried is an attempt that may have a log.
type Tried struct {
	Start   time.Time
	Log     string // path
	How     string // how the attempt ended, for people
	Running bool
	Key     cache.Key // of the node at that time; zero for a running attempt, and for one of another node or machine
}

// Name returns the attempt's name, by the file of its log.
func (t *Tried) Name() string { return document.AttemptOf(t.Log) }

// Tries lists the attempts at a node, the oldest first: those in this machine's journal, and those that are running.
// running are the nodes that run now; logOf returns the path of the log of an attempt.
func Tries(j *journal.Journal, address string, running []Node, logOf func(attempt string) string) []Tried {
	var list []Tried
	for _, t := range j.Attempts(address) {
		how := "succeeded in " + printable.Duration(t.Duration)
		if t.Failure != nil {
			how = "failed: " + t.Failure.Message
		}
		list = append(list, Tried{t.Start, logOf(t.ID), how, false, t.Key})
	}
	for _, n := range running {
		if n.Address == address {
			list = append(list, Tried{Start: n.Since, Log: n.Log, How: "running", Running: true})
		}
	}
	return list
}

// OfStep is Tries; if there are none, it returns the attempt that made the node's result.
func OfStep(j *journal.Journal, st *engine.Step, running []Node, logOf func(attempt string) string) []Tried {
	list := Tries(j, st.Node.Address, running, logOf)
	if meta, ok := st.Stored(); ok && len(list) == 0 && meta.Log != "" {
		list = append(list, madeBy(meta, logOf))
	}
	return list
}

func madeBy(meta cache.Meta, logOf func(attempt string) string) Tried {
	return Tried{Start: meta.Created, Log: logOf(meta.Log), How: "made by " + meta.Address}
}

// Standing returns the attempt of list that tells the state of a node: the one that runs, or made the result or the
// failure, or else the last one with the present key; false if there is none. Attempts at an address may be at
// different work: patches are edited, and the next try has the same addresses.
func Standing(list []Tried, st *engine.Step, logOf func(attempt string) string) (Tried, bool) {
	with := func(is func(t *Tried) bool) (Tried, bool) {
		for i := range slices.Backward(list) {
			if is(&list[i]) {
				return list[i], true
			}
		}
		return Tried{}, false
	}
	made := ""
	meta, stored := st.Stored()
	switch {
	case stored:
		made = meta.Log
	case st.Failure != nil:
		made = st.Failure.ID
	}
	t, ok := with(func(t *Tried) bool { return t.Running })
	if !ok && made != "" {
		t, ok = with(func(t *Tried) bool { return t.Log == logOf(made) })
	}
	if !ok && stored && made != "" {
		t, ok = madeBy(meta, logOf), true
	}
	if !ok {
		t, ok = with(func(t *Tried) bool { return t.Key == st.Key })
	}
	return t, ok
}

// Alike reports whether all attempts were at the same work, or the last one runs.
func Alike(list []Tried) bool {
	last := &list[len(list)-1]
	return last.Running || !slices.ContainsFunc(list, func(t Tried) bool { return t.Key != last.Key })
}

// Voided lists the attempts at the blocks of a benchmark that failed because of its candidate, the oldest first. If the
// blocks were then measured without the candidate, the benchmark itself has no attempt.
func Voided(j *journal.Journal, st *engine.Step, candidate string, logOf func(attempt string) string) []Tried {
	var list []Tried
	for _, block := range st.Node.Needs {
		for _, t := range j.Attempts(block.Address) {
			if t.Failure != nil && t.Failure.Subject == candidate {
				list = append(list, Tried{t.Start, logOf(t.ID), block.Address + " failed: " + t.Failure.Message,
					false, t.Key})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Tried) int { return a.Start.Compare(b.Start) })
	return list
}
