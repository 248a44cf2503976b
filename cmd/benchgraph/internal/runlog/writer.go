package runlog

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/applylock"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/watch"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/report/document"
)

// Log writes the file of a run. An apply in which nothing happens leaves no file.
type Log struct {
	path   string
	file   *os.File // nil until something happens
	before []byte   // failures of earlier applies, for the file
}

// Create returns the log of a run in a directory, which it makes.
func Create(dir, run string) (*Log, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("run log: %w", err)
	}
	return &Log{path: Path(dir, run)}, nil
}

// Event appends an event. It leaves out nodes that were up to date beforehand, since they would be most of the file.
func (l *Log) Event(e engine.Event) {
	if e.Type == engine.NodeCached || e.Type == engine.NodeSkipped {
		return
	}
	text, err := watch.MarshalEvent(e)
	if err == nil && l.file == nil && e.Type == engine.NodeFailed && e.Attempt == 0 {
		l.before = append(append(l.before, text...), '\n')
		return
	}
	if err == nil && l.file == nil {
		text = append(l.before, text...)
		l.file, err = os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666) // an apply may have two parts
	}
	if err == nil {
		_, _ = l.file.Write(append(text, '\n')) // an apply goes on without its log
	}
}

// Close closes the file.
func (l *Log) Close() { l.file.Close() }

// LastAttempts returns the attempts of the last apply that ran something, from the logs in a directory.
func LastAttempts(dir string) []document.Attempt {
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

// Read returns the state of an apply from its log.
func Read(log io.Reader) (run Run) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		run.Take(lines.Bytes())
	}
	return run
}

// Next returns a name for the run of an apply of this process; dir has the logs of earlier ones.
func Next(dir string, now time.Time) string {
	if last, ok := Began(Newest(dir)); ok && !now.After(last) {
		now = last.Add(time.Millisecond)
	}
	return Name(now, os.Getpid())
}

// UnderWay returns the state of the apply that holds a lock, from its log in a directory.
func UnderWay(dir, lock string) Run {
	owner, held := applylock.Holder(lock)
	run := Newest(dir)
	if !held || !Of(run, owner.PID) { // an apply is planning, and the last run may have been killed
		return Run{}
	}
	f, err := os.Open(Path(dir, run))
	if err != nil {
		return Run{}
	}
	defer f.Close()
	return Read(f)
}
