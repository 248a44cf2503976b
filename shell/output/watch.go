package output

import (
	"bytes"
	"regexp"
)

// Watch looks for a pattern in each line that a server prints.
type Watch struct {
	pattern *regexp.Regexp
	line    []byte // what the last line holds so far, up to longestLine
	found   chan struct{}
	done    bool
}

const longestLine = 64 << 10

// NewWatch makes a watch for the pattern, a valid expression.
func NewWatch(pattern string) *Watch {
	return &Watch{pattern: regexp.MustCompile(pattern), found: make(chan struct{})}
}

// Write takes the next piece of output. Only the server's output is written here, by one goroutine.
func (w *Watch) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && !w.done; {
		piece, after, ended := bytes.Cut(rest, []byte("\n"))
		w.line = append(w.line, piece[:min(len(piece), longestLine-len(w.line))]...)
		if w.pattern.Match(w.line) {
			w.done = true
			close(w.found)
		}
		if ended {
			w.line = w.line[:0]
		}
		rest = after
	}
	return len(p), nil
}

// Seen is closed once the pattern was there; without a watch it never is.
func (w *Watch) Seen() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.found
}

// Hit says whether the pattern was there.
func (w *Watch) Hit() bool {
	select {
	case <-w.found:
		return true
	default:
		return false
	}
}
