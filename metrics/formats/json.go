package formats

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/jsondoc"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/number"
	"github.com/benchgraph/benchgraph/metrics/units"
)

// jsonLeaves reads every number of the last JSON document, named by its path.
type jsonLeaves struct{}

func (jsonLeaves) Parse(out metrics.Output) (metrics.Result, error) {
	var t jsondoc.Tail
	if _, err := io.Copy(&t, out.Stdout); err != nil {
		return metrics.Result{}, fmt.Errorf("json: %w", err)
	}
	c := newCollector("json")
	before := newEarlier()
	document := c.documents(&t, func(document any) {
		all := jsondoc.Leaves(document, maxSamples+1)
		before.full = before.full || len(all) > maxSamples
		for _, l := range all {
			before.note(l.Path, l.Value)
		}
	})
	all := jsondoc.Leaves(document, maxSamples+1)
	for _, l := range all[:min(len(all), maxSamples)] {
		if n, ok := l.Value.(json.Number); ok {
			c.add(l.Path, n.String(), units.OfPath(l.Path), 0)
			continue
		}
		text, remark, err := jsondoc.Digits(l.Value)
		switch {
		case err == number.ErrInfinite:
			c.warn(0, "%s: %v", l.Path, err)
		case err == nil:
			c.warn(0, "%s: %s", l.Path, remark)
			c.add(l.Path, text, units.OfPath(l.Path), 0)
		}
	}
	if len(all) > maxSamples {
		c.warn(0, "more than %d values: the rest is left out", maxSamples)
	}
	c.again(before)
	return c.finish(), nil
}

// earlier is what the documents of an output say before the last one.
type earlier struct {
	firsts map[string]metrics.Sample // by metric; the value is NaN where it is no number
	others map[string]metrics.Sample // the first ones that differ from those
	full   bool                      // they have more values than are kept
}

func newEarlier() earlier {
	return earlier{firsts: map[string]metrics.Sample{}, others: map[string]metrics.Sample{}}
}

// note keeps the first value of a metric, and the first one that differs from it.
func (e *earlier) note(metric string, value any) {
	text, _, err := jsondoc.Digits(value)
	v := math.NaN()
	switch value := value.(type) {
	case json.Number:
		if v, err = number.Parse(text); err != nil {
			v = math.NaN()
		}
	case string:
		if err == nil {
			v, _ = number.Parse(text)
		} else if text = value; value == jsondoc.NotFinite {
			text = "NaN"
		}
	default:
		return
	}
	to := e.firsts
	if first, known := e.firsts[metric]; known {
		if _, also := e.others[metric]; also || first.Value == v {
			return
		}
		to = e.others
	} else if len(e.firsts) >= maxSamples {
		e.full = true
		return
	}
	to[metric] = metrics.Sample{Metric: metric, Value: v, Printed: lines.Clip(text, maxLabel)}
}

// noDocument is the warning of an output that looked as if there were JSON in it.
const noDocument = "no JSON object or array found"

// documents calls found for every JSON document of what was written, returns the last one, and warns about what is odd.
func (c *collector) documents(t *jsondoc.Tail, found func(any)) any {
	if t.Dropped() {
		c.warn(0, "longer than %d MiB: only its end was searched for a document", jsondoc.MaxTail>>20)
	}
	document, cut := jsondoc.Each(t.Bytes(), found)
	if document != nil && (cut || t.Dropped()) {
		c.partly = "not all documents of the output were read"
	}
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
