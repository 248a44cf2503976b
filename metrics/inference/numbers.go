package inference

import (
	"fmt"
	"strings"

	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/invalid"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/number"
)

// sample adds a number. Two different numbers for the same metric are two results; so are a number and a text that is
// none. A table has fewer digits than a document, which is no difference.
func (r *reading) sample(metric, digits, unit string, n int) {
	first, again := r.Sample(metric)
	v, err := number.Parse(digits)
	bad, unread := r.Refused(metric)
	switch {
	case r.conflict != nil:
	case again && err == nil && first.Line == 0 && n > 0 && number.Same(first.Value, "", v, digits):
	case again && (err != nil || v != first.Value):
		r.conflict = invalid.New(invalid.Ambiguous, n,
			"%s is %s in %s and %s in %s: two results in one output", metric, first.Printed,
			place(first.Line, "one document"), lines.Clip(digits, collect.MaxLabel), place(n, "another"))
	case unread && err == nil:
		r.conflict = invalid.New(invalid.Ambiguous, n, "%s is %s in %s, and in %s: two results in one output",
			metric, lines.Clip(digits, collect.MaxLabel), place(n, "a document"), bad)
	}
	if !again || first.Line > 0 && first.Line < r.header {
		r.Add(metric, digits, unit, n)
	}
}

// place names a line; 0 is a document.
func place(line int, document string) string {
	if line == 0 {
		return document
	}
	return fmt.Sprintf("line %d", line)
}

// unreadable adds the value of a metric that is no number.
func (r *reading) unreadable(metric, text string, n int) {
	if r.section == warming {
		return
	}
	word, _, _ := strings.Cut(text, " ")
	r.sample(r.prefix+metric, word, "", n)
}

// otherUnit refuses a metric whose label has another unit than any version prints.
func (r *reading) otherUnit(name, rest string, n int) {
	at := strings.LastIndex(name, " (")
	if at < 0 || !strings.HasSuffix(name, ")") || !digitsFirst(rest) {
		return
	}
	metric, _, _, ok := latencyLabel(name[:at])
	for label, l := range r.labels {
		if before, _, found := strings.Cut(label, " ("); found && before == name[:at] {
			metric, ok = l.metric, true
		}
	}
	if ok && r.section != warming {
		r.Refuse(r.prefix+metric, n, fmt.Sprintf("the unit in %q is not known", lines.Clip(name, collect.MaxLabel)))
	}
}

// truncated records that the output ends inside a number or its unit.
func (r *reading) truncated(metric, text string, n int) {
	r.cut = invalid.New(invalid.Incomplete, n, "%s: the output ends inside %q", metric,
		lines.Clip(strings.TrimSpace(text), collect.MaxLabel))
	r.last.metric = metric
}
