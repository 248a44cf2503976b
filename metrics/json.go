package metrics

import (
	"encoding/json"
	"fmt"
	"io"
)

// jsonLeaves reads every number of the last JSON document, named by its path.
type jsonLeaves struct{}

func (jsonLeaves) Format() string { return "json" }

func (jsonLeaves) Parse(out Output) (Result, error) {
	var t tail
	if _, err := io.Copy(&t, out.Stdout); err != nil {
		return Result{}, fmt.Errorf("json: %w", err)
	}
	c := newCollector("json")
	firsts := map[string]Sample{}
	document := t.each(c, func(earlier any) {
		for _, l := range leaves(earlier, "", nil, maxSamples-len(firsts)) {
			noteFirst(firsts, l.path, l.value)
		}
	})
	all := leaves(document, "", nil, maxSamples+1)
	for _, l := range all[:min(len(all), maxSamples)] {
		if n, ok := l.value.(json.Number); ok {
			c.add(l.path, n.String(), pathUnit(l.path), 0)
			continue
		}
		text, remark, err := digits(l.value)
		switch {
		case err == errNotFinite:
			c.warn(0, "%s: %v", l.path, err)
		case err == nil:
			c.warn(0, "%s: %s", l.path, remark)
			c.add(l.path, text, pathUnit(l.path), 0)
		}
	}
	if len(all) > maxSamples {
		c.warn(0, "more than %d values: the rest is left out", maxSamples)
	}
	c.again(firsts)
	return c.finish(), nil
}

// noteFirst keeps the first number of a metric.
func noteFirst(firsts map[string]Sample, metric string, value any) {
	if _, known := firsts[metric]; known {
		return
	}
	text, _, err := digits(value)
	if err != nil {
		return
	}
	if v, err := number(text); err == nil {
		firsts[metric] = Sample{Metric: metric, Value: v, Printed: text}
	}
}

// noDocument is the warning of an output that looked as if there were JSON in it.
const noDocument = "no JSON object or array found"

// each calls found for every JSON document of what was written, returns the last one, and warns about what is odd.
func (t *tail) each(c *collector, found func(any)) any {
	t.trim()
	if t.dropped {
		c.warn(0, "longer than %d MiB: only its end was searched for a document", maxDocument>>20)
	}
	document, cut := eachDocument(t.buf, found)
	switch {
	case document == nil && cut:
		c.warn(0, "the JSON document ends before its last bracket")
	case document == nil:
		c.warn(0, noDocument)
	case cut:
		c.warn(0, "a later JSON document ends before its last bracket: the last whole one counts")
	}
	return document
}
