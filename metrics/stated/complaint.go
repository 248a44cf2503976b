package stated

import (
	"bytes"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/metrics/lines"
)

// Bounds on the stored errors and warnings of one output.
const (
	maxComplaints = 16  // lines
	maxComplaint  = 120 // bytes of one
)

// complaint matches a line of an error or a warning, at its start or behind the time of a logger.
var complaint = lazyregexp.New(`^(?:[\[(]?[0-9T:.,/ +-]{4,40}[\])]?[ ` +
	`-]*)?[\[(]?(?:ERROR|Error|error|FATAL|Fatal|CRITICAL|WARNING|Warning|WARN)[\])]?(?:[: ]|$)` +
	`|^Traceback \(most recent|^panic: |^[A-Za-z.]*(?:Error|Exception): `)

// complains reports whether a line is an error or a warning.
func complains(b []byte) bool {
	b = b[:min(len(b), maxComplaint)]
	for _, word := range []string{"rror", "ERROR", "WARN", "Warn", "Traceback", "panic", "atal", "FATAL", "CRITICAL",
		"xception"} {
		if bytes.Contains(b, []byte(word)) {
			return complaint().MatchString(strings.TrimSpace(string(b)))
		}
	}
	return false
}

// complain adds the form of a line, unless the list has it or is full.
func complain(list []string, text string) []string {
	form := lines.Clip(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, lines.Plain(text)), maxComplaint)
	for strings.Contains(form, "##") {
		form = strings.ReplaceAll(form, "##", "#")
	}
	if len(list) >= maxComplaints || slices.Contains(list, form) {
		return list
	}
	return append(list, form)
}
