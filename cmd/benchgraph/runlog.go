package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/applylock"
)

// runLog keeps the events of an apply in a file, so that other processes see what runs: status and logs read it.
type runLog struct {
	file *os.File
	err  error
}

func (p place) runDir() string { return filepath.Join(p.state, "runs") }

const runTime = "20060102T150405.000"

// newRun names an apply: names of later ones sort later, also when the clock was set back in between.
func (p place) newRun(now time.Time) string {
	now = now.UTC()
	text, _, _ := strings.Cut(p.lastRun(), "-")
	if last, err := time.Parse(runTime, text); err == nil && !now.After(last) {
		now = last.Add(time.Millisecond)
	}
	return fmt.Sprintf("%s-%d", now.Format(runTime), os.Getpid())
}

// lastRun is the name of the last apply; empty: there was none.
func (p place) lastRun() string {
	files, err := filepath.Glob(filepath.Join(p.runDir(), "*.jsonl"))
	if err != nil || len(files) == 0 {
		return ""
	}
	return strings.TrimSuffix(filepath.Base(slices.Max(files)), ".jsonl")
}

func (p place) createRunLog(run string) (*runLog, error) {
	if err := os.MkdirAll(p.runDir(), 0o755); err != nil {
		return nil, fmt.Errorf("run log: %w", err)
	}
	f, err := os.Create(filepath.Join(p.runDir(), run+".jsonl"))
	if err != nil {
		return nil, fmt.Errorf("run log: %w", err)
	}
	return &runLog{file: f}, nil
}

// Event appends an event. What was up to date beforehand is left out: it would be most of the file, and is no news.
func (l *runLog) Event(e engine.Event) {
	if e.Type == engine.NodeCached || e.Type == engine.NodeSkipped {
		return
	}
	text, err := view.MarshalEvent(e)
	if err == nil {
		_, err = l.file.Write(append(text, '\n'))
	}
	if l.err == nil {
		l.err = err
	}
}

// Close closes the file.
func (l *runLog) Close() { l.file.Close() }

// runningNode is a node that runs in another process.
type runningNode struct {
	Address string
	Phase   string
	Attempt int
	Since   time.Time
	Log     string
}

// running lists what the apply that holds the lock is running now, in the order of its starts.
func (p place) running() []runningNode {
	if _, held := applylock.Holder(p.applyLock()); !held {
		return nil
	}
	f, err := os.Open(filepath.Join(p.runDir(), p.lastRun()+".jsonl"))
	if err != nil {
		return nil
	}
	defer f.Close()
	return runningIn(f)
}

// runningIn lists the nodes that a run log says have started and not ended.
func runningIn(log io.Reader) []runningNode {
	var nodes []runningNode
	at := func(address string) int {
		return slices.IndexFunc(nodes, func(n runningNode) bool { return n.Address == address })
	}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e struct {
			Type, Address, Phase, Log string
			Attempt                   int
			Time                      time.Time
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		i := at(e.Address)
		switch engine.EventType(e.Type) {
		case engine.NodeStart:
			nodes = append(nodes, runningNode{e.Address, "", e.Attempt, e.Time, e.Log})
		case engine.NodeProgress:
			if i >= 0 {
				nodes[i].Phase = e.Phase
			}
		case engine.NodeDone, engine.NodeFailed:
			if i >= 0 {
				nodes = slices.Delete(nodes, i, i+1)
			}
		}
	}
	return nodes
}
