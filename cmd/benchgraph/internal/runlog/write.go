package runlog

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/watch"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/report"
)

// Log is the file of a run as its apply writes it. An apply that has nothing to tell of leaves none.
type Log struct {
	path string
	file *os.File // nil until there is an event
}

// Create returns the log of a run in a directory, which it makes.
func Create(dir, run string) (*Log, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("run log: %w", err)
	}
	return &Log{path: Path(dir, run)}, nil
}

// Event appends an event. Nodes that were up to date beforehand are left out: they would be most of the file.
func (l *Log) Event(e engine.Event) {
	if e.Type == engine.NodeCached || e.Type == engine.NodeSkipped {
		return
	}
	text, err := watch.MarshalEvent(e)
	if err == nil && l.file == nil {
		l.file, err = os.Create(l.path)
	}
	if err == nil {
		_, _ = l.file.Write(append(text, '\n')) // an apply goes on without its log
	}
}

// Close closes the file.
func (l *Log) Close() { l.file.Close() }

// LastAttempts are those of the last apply that ran something, by the logs in a directory.
func LastAttempts(dir string) []report.Attempt {
	for _, run := range Runs(dir) {
		text, err := os.ReadFile(Path(dir, run))
		if err != nil {
			continue
		}
		if attempts := Attempts(run, text); len(attempts) > 0 {
			return attempts
		}
	}
	return nil
}

// Read says how an apply stands by its log.
func Read(log io.Reader) (run Run) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		run.Take(lines.Bytes())
	}
	return run
}
