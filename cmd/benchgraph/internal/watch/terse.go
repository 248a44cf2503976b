package watch

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
)

// Terse prints events for a program that must remember everything it reads: a line for each failure and, now and then,
// a line for the progress. It uses no colours and prints no successes.
type Terse struct {
	mu sync.Mutex
	w  io.Writer
	progress
	lastProgress time.Time
}

// heartbeat is the least time between two lines of progress.
const heartbeat = time.Minute

// NewTerse returns a Terse for a plan.
func NewTerse(w io.Writer, p *engine.Plan) *Terse {
	return &Terse{w: w, progress: newProgress(p), lastProgress: time.Now()}
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
			fmt.Fprintf(t.w, "failed %s [%s] %s\n", view.Clean(e.Address), view.Class(f),
				view.Clean(strings.Join(parts, " | ")))
		}
	case engine.FixApplied:
		what := strings.TrimSpace(dataText(e.Data, "fix") + " " + e.Reason)
		fmt.Fprintf(t.w, "fix %s %s\n", view.Clean(e.Address), view.Clean(what))
	case engine.Note:
		fmt.Fprintf(t.w, "note %s\n", view.Clean(e.Reason))
	}
	if time.Since(t.lastProgress) < heartbeat {
		return
	}
	t.lastProgress = time.Now()
	running, queued := t.busy()
	text := fmt.Sprintf("progress %d/%d ended, %d failed, %d running", len(t.ended), t.total, t.failed, running)
	if queued > 0 {
		text += fmt.Sprintf(", %d queued", queued)
	}
	if left := t.left(); left != "" {
		text += ", " + left
	}
	fmt.Fprintln(t.w, text)
}

// Close does nothing: lines stay.
func (t *Terse) Close() {}
