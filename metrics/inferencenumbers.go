package metrics

import (
	"fmt"
	"strings"

	"github.com/benchgraph/benchgraph/metrics/number"
)

// sample keeps a number. Two different ones for the same metric are two results; so are a number and what is none. A
// table has fewer digits than a document.
func (r *inferenceReading) sample(metric, digits, unit string, n int) {
	i, again := r.index[metric]
	v, err := number.Parse(digits)
	bad, unread := r.unread[metric]
	switch {
	case r.conflict != nil:
	case again && err == nil && r.Samples[i].Line == 0 && n > 0 && number.Same(r.Samples[i].Value, "", v, digits):
	case again && (err != nil || v != r.Samples[i].Value):
		first := r.Samples[i]
		r.conflict = r.refuse(ruleAmbiguous, n, "%s is %s in line %d and %s in line %d: two results in one output",
			metric, first.Printed, first.Line, clip(digits, maxLabel), n)
	case unread && err == nil:
		r.conflict = r.refuse(ruleAmbiguous, n, "%s is %s in line %d, and in %s %s: two results in one output",
			metric, clip(digits, maxLabel), n, place(bad.line), bad.text)
	}
	if !again {
		r.add(metric, digits, unit, n)
	}
}

// unreadable notes that a metric has a value that is no number.
func (r *inferenceReading) unreadable(metric, text string, n int) {
	if r.section == warming {
		return
	}
	word, _, _ := strings.Cut(text, " ")
	r.sample(r.prefix+metric, word, "", n)
}

// otherUnit notes a metric whose label names another unit than any version prints.
func (r *inferenceReading) otherUnit(name, rest string, n int) {
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
		r.collector.refuse(r.prefix+metric, n, fmt.Sprintf("the unit in %q is not known", clip(name, maxLabel)))
	}
}

// truncated notes that the output ends inside a number or its unit.
func (r *inferenceReading) truncated(metric, text string, n int) {
	r.cut = r.refuse(ruleIncomplete, n, "%s: the output ends inside %q", metric,
		clip(strings.TrimSpace(text), maxLabel))
	r.last.metric = metric
}
