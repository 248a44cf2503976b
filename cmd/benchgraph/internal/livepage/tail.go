package livepage

import (
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/applylock"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
)

// lookEvery is the interval between readings of the run log. A reading without news costs two system calls.
const lookEvery = 250 * time.Millisecond

// chunk is the size of one read of a run log.
const chunk = 64 << 10

// tail follows the run log of the newest apply, of any process, and keeps its state.
type tail struct {
	dir, lock string

	mu      sync.Mutex
	at      standing
	changed chan struct{}
}

func newTail(dir, lock string) *tail {
	return &tail{dir: dir, lock: lock, changed: make(chan struct{})}
}

// standing is the state of an apply at one moment.
type standing struct {
	run    string // run whose log is followed; empty: none
	offset int64  // position in its log
	state  runlog.Run
	owner  applylock.Owner
	held   bool // an apply runs: owner
	ends   int  // number of ended nodes in all followed runs
	// how nodes of the run have ended, by address: done or failed
	ended map[string]string
}

// now returns the state of the apply, and a channel that is closed when the state changes.
func (t *tail) now() (standing, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.at
	s.state.Running, s.state.Ended = slices.Clone(s.state.Running), slices.Clone(s.state.Ended)
	s.state.Groups, s.state.Waits = slices.Clone(s.state.Groups), maps.Clone(s.state.Waits)
	s.ended = maps.Clone(s.ended)
	if s.held && !runlog.Of(s.run, s.owner.PID) {
		// an apply is still planning, and the newest log is that of the previous one
		s.state, s.ended = runlog.Run{}, nil
	}
	return s, t.changed
}

// follow reads the files repeatedly until done is closed.
func (t *tail) follow(done <-chan struct{}) {
	for {
		t.look()
		select {
		case <-done:
			return
		case <-time.After(lookEvery):
		}
	}
}

// look reads what was written since the last call.
func (t *tail) look() {
	owner, held := applylock.Holder(t.lock)
	news := t.read()
	t.mu.Lock()
	defer t.mu.Unlock()
	if held != t.at.held || held && owner.PID != t.at.owner.PID {
		news = true
	}
	t.at.owner, t.at.held = owner, held
	if news {
		close(t.changed)
		t.changed = make(chan struct{})
	}
}

// read reads whole lines of the followed log, and switches to a newer log once the older one is read to its end.
func (t *tail) read() (news bool) {
	newest := runlog.Newest(t.dir)
	t.mu.Lock()
	run, offset := t.at.run, t.at.offset
	t.mu.Unlock()
	for {
		if run != "" {
			text := readLines(runlog.Path(t.dir, run), offset)
			offset += int64(len(text))
			if len(text) > 0 {
				t.take(offset, text)
				news = true
				continue
			}
		}
		if run == newest {
			return news
		}
		run, offset, news = newest, 0, true
		t.mu.Lock()
		t.at.run, t.at.offset, t.at.state, t.at.ended = run, 0, runlog.Run{}, map[string]string{}
		t.mu.Unlock()
	}
}

func (t *tail) take(offset int64, text []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	state := &t.at.state
	runlog.Lines(text, func(line []byte) {
		done, failed := state.Done, state.Failed
		state.Take(line)
		switch {
		case state.Done > done:
			t.at.ended[state.Ended[len(state.Ended)-1].Address] = "done"
		case state.Failed > failed:
			t.at.ended[state.Ended[len(state.Ended)-1].Address] = "failed"
		}
		t.at.ends += state.Done - done + state.Failed - failed
	})
	t.at.offset = offset
}

// count returns how many nodes of the run have ended in one way, each by its last end.
func (s *standing) count(how string) (n int) {
	for _, ended := range s.ended {
		if ended == how {
			n++
		}
	}
	return n
}

// readLines reads whole lines of a run log from an offset on; nothing if no line is complete. Of a line that is too
// long for an event, it returns a part.
func readLines(path string, offset int64) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	for size := int64(chunk); ; size *= 2 {
		text := make([]byte, size)
		n, err := f.ReadAt(text, offset)
		if whole := runlog.Lines(text[:n], func([]byte) {}); whole > 0 {
			return text[:whole]
		}
		switch {
		case err != nil && err != io.EOF, int64(n) < size:
			return nil
		case size > runlog.Longest:
			return text
		}
	}
}
