// Package runlog reads the file of events that an apply writes, one JSON object a line, so that other processes see the
// running nodes and the results.
package runlog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/report/document"
)

// Bounds of the history that a Run keeps.
const (
	keptEnds    = 20  // ends of nodes
	keptGroups  = 3   // commits in benchmarks whose samples were last taken
	keptSamples = 600 // samples of each
)

// Longest is the length in bytes from which a line is skipped: no event is that long.
const Longest = 1 << 20

// Node is a node that runs or has ended.
type Node struct {
	Address  string
	Phase    string    // of a running node
	Of       string    // candidate of the phase; empty: it is of none
	Entered  time.Time // when the phase began
	Attempt  int
	Since    time.Time // when the attempt began
	Log      string    // path
	End      time.Time // zero: the node runs
	Failed   bool
	Retrying bool
	Class    string // of its failure
	Message  string
}

// Sample is one number of a block.
type Sample struct {
	Benchmark, Commit, Candidate, Metric, Unit string
	Block                                      int
	Value                                      float64
}

// Group has the samples of one commit in one benchmark, in the order in which they were taken.
type Group struct {
	Benchmark, Commit string
	Samples           []Sample
}

// Run is the state of an apply after the events that were taken in. The zero Run is the state before the first.
type Run struct {
	Running []Node // in the order of their starts
	// what nodes wait for (resources, processes, the start of a job), by address; "": of nodes that were not named
	Waits   map[string]string
	Ended   []Node  // the last ones, the newest last
	Groups  []Group // of the last samples, the newest last
	Done    int
	Failed  int // failed attempts that no other one followed
	Samples int
	Invalid int       // samples that do not count
	Last    time.Time // of the last event
}

// line has the fields of an event that are read.
type line struct {
	Type, Address, Phase, Log, Class, Message, Reason string
	Benchmark, Candidate, Metric, Unit                string
	Attempt, Block, CPUs                              int
	Value                                             float64
	Waited                                            float64 `json:"waited_s"`
	Queued                                            float64 `json:"queued_s"`
	Took                                              float64 `json:"duration_s"`
	Devices                                           []string
	Retrying                                          bool
	Time                                              time.Time
}

// Take takes in one line. It skips a line that is no event.
func (r *Run) Take(text []byte) {
	var e line
	if len(text) > Longest || json.Unmarshal(text, &e) != nil {
		return
	}
	if e.Time.After(r.Last) {
		r.Last = e.Time
	}
	i := slices.IndexFunc(r.Running, func(n Node) bool { return n.Address == e.Address })
	switch engine.EventType(e.Type) {
	case engine.Note:
		if what, ok := strings.CutPrefix(e.Reason, engine.Waiting); ok {
			if r.Waits == nil {
				r.Waits = map[string]string{}
			}
			r.Waits[e.Address] = what
		}
	case engine.NodeStart:
		delete(r.Waits, e.Address)
		delete(r.Waits, "")
		r.Running = append(r.Running, Node{Address: e.Address, Attempt: e.Attempt, Since: e.Time, Log: e.Log})
	case engine.LeaseGranted:
		delete(r.Waits, e.Address) // the job runs from now on
		if i >= 0 {
			r.Running[i].Since = e.Time
		}
	case engine.NodeProgress:
		if i >= 0 {
			r.Running[i].Phase, r.Running[i].Of, r.Running[i].Entered = e.Phase, e.Candidate, e.Time
		}
	case engine.NodeDone, engine.NodeFailed:
		delete(r.Waits, e.Address)
		n := Node{Address: e.Address, Attempt: e.Attempt, Since: e.Time, Log: e.Log}
		if i >= 0 {
			n = r.Running[i]
			r.Running = slices.Delete(r.Running, i, i+1)
		}
		n.End, n.Failed, n.Retrying = e.Time, engine.EventType(e.Type) == engine.NodeFailed, e.Retrying
		n.Class, n.Message = e.Class, e.Message
		if n.Failed && n.Message == "" {
			n.Message = e.Reason
		}
		r.Ended = last(append(r.Ended, n), keptEnds)
		if !n.Failed {
			r.Done++
		} else if !n.Retrying {
			r.Failed++
		}
	case engine.SampleTaken:
		r.Samples++
		r.sample(Sample{e.Benchmark, "", e.Candidate, e.Metric, e.Unit, e.Block, e.Value})
	case engine.SampleInvalid:
		r.Invalid++
	}
}

// Text names at most three running nodes for people: each with its phase, the phase's candidate, and for how long.
func (r *Run) Text(now time.Time) string {
	var list []string
	for _, n := range r.Running {
		text := n.Address
		if n.Phase != "" {
			at := strings.TrimPrefix(n.Of+": "+n.Phase, ": ")
			text += fmt.Sprintf(" (%s, for %s)", at, printable.Duration(now.Sub(n.Entered)))
		}
		list = append(list, text)
	}
	return printable.Some(list, 3)
}

// Attempts returns all attempts in the log of a run, in the order of their starts. An attempt without an end was
// interrupted with the run.
func Attempts(run string, log []byte) []document.Attempt {
	var all []document.Attempt
	open := map[string]int{} // by address
	var last time.Time
	Lines(log, func(text []byte) {
		var e line
		if len(text) > Longest || json.Unmarshal(text, &e) != nil {
			return
		}
		if e.Time.After(last) {
			last = e.Time
		}
		i, running := open[e.Address]
		switch engine.EventType(e.Type) {
		case engine.NodeStart:
			open[e.Address] = len(all)
			all = append(all, document.Attempt{Run: run, Address: e.Address, Number: e.Attempt, Start: e.Time,
				Ready: e.Time.Add(-seconds(e.Waited)), State: document.AttemptInterrupted})
		case engine.LeaseGranted:
			if running {
				all[i].Devices, all[i].CPUs = e.Devices, e.CPUs
			}
		case engine.NodeDone, engine.NodeFailed:
			if !running {
				return
			}
			delete(open, e.Address)
			at := &all[i]
			at.End, at.State = at.Start.Add(seconds(e.Queued+e.Took)), document.AttemptDone
			if at.End.After(e.Time) { // the job is of an earlier apply; this apply followed it
				at.End = e.Time
			}
			at.Start = at.End.Add(-seconds(e.Took))
			if at.Ready.After(at.Start) {
				at.Ready = at.Start
			}
			if engine.EventType(e.Type) == engine.NodeFailed {
				at.State, at.Class, at.Message = document.AttemptFailed, e.Class, cmp.Or(e.Message, e.Reason)
			}
		}
	})
	for _, i := range open {
		all[i].End = last
	}
	return all
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// sample adds a sample to its group, which becomes the newest.
func (r *Run) sample(s Sample) {
	s.Commit, _, _ = strings.Cut(s.Candidate, "/")
	g := Group{Benchmark: s.Benchmark, Commit: s.Commit}
	same := func(o Group) bool { return o.Benchmark == g.Benchmark && o.Commit == g.Commit }
	if i := slices.IndexFunc(r.Groups, same); i >= 0 {
		g = r.Groups[i]
		r.Groups = slices.Delete(r.Groups, i, i+1)
	}
	g.Samples = last(append(g.Samples, s), keptSamples)
	r.Groups = last(append(r.Groups, g), keptGroups)
}

// last returns a copy of the last n elements, or the slice itself if it has no more.
func last[T any](s []T, n int) []T {
	if len(s) <= n {
		return s
	}
	return slices.Clone(s[len(s)-n:])
}

// Lines calls f with each whole line of a text, and returns how many bytes these lines have.
func Lines(text []byte, f func(line []byte)) int {
	read := 0
	for {
		end := bytes.IndexByte(text[read:], '\n')
		if end < 0 {
			return read
		}
		f(text[read : read+end])
		read += end + 1
	}
}

// Runs returns the names of the runs whose logs are in a directory, the newest first.
func Runs(dir string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, "*.jsonl")) // the pattern is well-formed
	for i, name := range names {
		names[i] = strings.TrimSuffix(filepath.Base(name), ".jsonl")
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names
}

// Newest returns the name of the newest run whose log is in a directory; "" if there is none.
func Newest(dir string) string {
	if runs := Runs(dir); len(runs) > 0 {
		return runs[0]
	}
	return ""
}

// Name returns the name of a run of a process. Names of later runs sort later.
func Name(began time.Time, pid int) string {
	return fmt.Sprintf("%s-%d", began.UTC().Format(nameTime), pid)
}

const nameTime = "20060102T150405.000"

// Began returns when a run began, by its name; false if the name has no time.
func Began(run string) (time.Time, bool) {
	text, _, _ := strings.Cut(run, "-")
	at, err := time.Parse(nameTime, text)
	return at, err == nil
}

// Of reports whether a run is of a process. The process that holds the lock of applies may not have begun its run; then
// the newest run is of another one.
func Of(run string, pid int) bool {
	_, text, found := strings.Cut(run, "-")
	return found && text == strconv.Itoa(pid)
}

// Path returns the path of the log of a run.
func Path(dir, run string) string { return filepath.Join(dir, run+".jsonl") }
