package runlog

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/watch"
	"github.com/benchgraph/benchgraph/engine"
)

// Writer keeps the events of an apply in a file, so that other processes see the running nodes and the results.
type Writer struct{ file *os.File }

// Create makes the file of a run in a directory, which is made, too.
func Create(dir, run string) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("run log: %w", err)
	}
	f, err := os.Create(Path(dir, run))
	if err != nil {
		return nil, fmt.Errorf("run log: %w", err)
	}
	return &Writer{f}, nil
}

// Event appends an event. Nodes that were up to date beforehand are left out: they would be most of the file.
func (w *Writer) Event(e engine.Event) {
	if e.Type == engine.NodeCached || e.Type == engine.NodeSkipped {
		return
	}
	if text, err := watch.MarshalEvent(e); err == nil {
		_, _ = w.file.Write(append(text, '\n')) // an apply goes on without its log
	}
}

// Close closes the file.
func (w *Writer) Close() { w.file.Close() }

// Read says how an apply stands by its log.
func Read(log io.Reader) (run Run) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		run.Take(lines.Bytes())
	}
	return run
}
