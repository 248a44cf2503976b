package view

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/stats"
)

// Terse prints events for a program that must remember all that it reads: one line for each failure and, now and then,
// one for the progress. It uses no colours and prints no successes.
type Terse struct {
	mu sync.Mutex
	w  io.Writer
	progress
	told time.Time
}

// heartbeat is how often a Terse says how far the apply is.
const heartbeat = time.Minute

// NewTerse returns a Terse for a plan.
func NewTerse(w io.Writer, p *engine.Plan) *Terse {
	return &Terse{w: w, progress: newProgress(p), told: time.Now()}
}

// Event writes the line of one event.
func (t *Terse) Event(e engine.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(e)
	switch e.Type {
	case engine.NodeFailed:
		if f := e.Failure; f != nil && !e.Retrying {
			parts := []string{f.Message}
			for _, part := range [][2]string{{"evidence: ", f.Evidence}, {"log: ", e.Log}, {"remedy: ", f.Remedy}} {
				if part[1] != "" && !strings.Contains(f.Message, part[1]) {
					parts = append(parts, part[0]+part[1])
				}
			}
			fmt.Fprintf(t.w, "failed %s [%s] %s\n", Clean(e.Address), Class(f), Clean(strings.Join(parts, " | ")))
		}
	case engine.FixApplied:
		fmt.Fprint(t.w, strings.TrimSpace("fix "+Clean(e.Address)+" "+Clean(dataText(e.Data, "fix")+" "+e.Reason)),
			"\n")
	case engine.Note:
		fmt.Fprintf(t.w, "note %s\n", Clean(e.Reason))
	}
	if time.Since(t.told) < heartbeat {
		return
	}
	t.told = time.Now()
	text := fmt.Sprintf("progress %d/%d ended, %d failed, %d running", len(t.ended), t.total, t.failed, len(t.running))
	if left := t.left(); left != "" {
		text += ", " + left
	}
	fmt.Fprintln(t.w, text)
}

// Close does nothing: lines are not taken back.
func (t *Terse) Close() {}

// TerseVerdicts writes a line for each primary row: outcome, candidate, benchmark, metric, figures, and what is said of
// the outcome.
func TerseVerdicts(w io.Writer, rows []stats.Comparison) {
	for _, row := range rows {
		if !row.Primary {
			continue
		}
		fields := []string{string(row.Outcome), row.Candidate, row.Benchmark, row.Metric}
		if row.Blocks > 0 {
			fields = append(fields, Effect(row), Values(row), fmt.Sprintf("%d blocks", row.Blocks))
		}
		var present []string
		for _, f := range fields {
			if f = Clean(f); f != "" {
				present = append(present, f)
			}
		}
		fmt.Fprintln(w, strings.Join(present, " ")+remarks(row))
	}
}
