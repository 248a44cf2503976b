package output

import (
	"bytes"
	"regexp"
)

// Watch searches each line of a server's output for a pattern.
type Watch struct {
	pattern *regexp.Regexp
	line    []byte // the last line so far, up to longestLine
	found   chan struct{}
	done    bool
}

const longestLine = 64 << 10

// NewWatch returns a watch for a valid pattern.
func NewWatch(pattern string) *Watch {
	return &Watch{pattern: regexp.MustCompile(pattern), found: make(chan struct{})}
}

// Write adds output of the server. Only one goroutine calls it.
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

// Seen returns a channel that is closed when the pattern was found; without a watch, nil.
func (w *Watch) Seen() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.found
}

// Hit reports whether the pattern was found.
func (w *Watch) Hit() bool {
	select {
	case <-w.found:
		return true
	default:
		return false
	}
}
