package metrics

import (
	"io"
	"strings"
)

// LastLine is the last line of a log that says anything, cleaned and shortened like the evidence of a Match. It is what
// can be shown of a failure that no rule explains.
func LastLine(log io.Reader) string {
	last := ""
	for l := newLines(log); l.next(); {
		if text := evidence(l.bytes(), 0); strings.TrimSpace(text) != "" {
			last = text
		}
	}
	return last
}
