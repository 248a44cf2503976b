package inference

import (
	"bytes"

	"github.com/benchgraph/benchgraph/metrics/lines"
)

// Search recognises the output of a benchmark of vLLM or SGLang by its lines.
type Search struct{ r *reading }

// NewSearch returns a search before the first line.
func NewSearch() *Search { return &Search{newReading("vllm")} }

// Line reads the current line. It returns the tool that prints such a line; empty: other programs print it, too. Below
// a header that both tools print, Line reads further lines, and returns the error of reading them.
func (s *Search) Line(l *lines.Reader) (tool string, err error) {
	switch {
	case !s.r.line(l.Bytes(), l.Number):
		return "", nil
	case s.r.inTable && s.r.tool == "vllm":
		return serving(l), l.Err()
	}
	return s.r.tool, nil
}

// serving tells apart the two clients that print the same header: SGLang's table begins with its backend.
func serving(l *lines.Reader) string {
	for n := 0; n < 4 && l.Next(); {
		line := bytes.TrimSpace([]byte(lines.WithoutMarks(l.Text())))
		if bytes.HasPrefix(line, []byte("Backend:")) {
			return "sglang"
		}
		if len(line) > 0 {
			n++
		}
	}
	return "vllm"
}
