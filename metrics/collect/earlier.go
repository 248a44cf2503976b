package collect

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/jsondoc"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/number"
)

// Earlier holds the values of all documents of an output, to find those that differ from the last document.
type Earlier struct {
	firsts map[string]metrics.Sample // first value by metric; NaN if it is no number
	others map[string]metrics.Sample // first value that differs from the one in firsts
	Full   bool                      // there were too many values to keep them all
}

// NewEarlier returns an Earlier without values.
func NewEarlier() Earlier {
	return Earlier{firsts: map[string]metrics.Sample{}, others: map[string]metrics.Sample{}}
}

// Note keeps the value of a metric in a document if it is the first one, or the first that differs from it.
func (e *Earlier) Note(metric string, value any) {
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
	} else if len(e.firsts) >= MaxSamples {
		e.Full = true
		return
	}
	to[metric] = metrics.Sample{Metric: metric, Value: v, Printed: lines.Clip(text, MaxLabel)}
}

// NoteAll notes all values of a document that was read: its samples and the values that were refused.
func (e *Earlier) NoteAll(c *Collector) {
	for _, s := range c.Samples {
		e.Note(s.Metric, json.Number(strconv.FormatFloat(s.Value, 'g', -1, 64)))
	}
	for metric, bad := range c.refused {
		e.Note(metric, bad.text)
	}
}

// Again finds the metrics of the last document for which an earlier document has another value, or may have one.
func (c *Collector) Again(before Earlier) {
	for _, s := range c.Samples {
		if s.Line > 0 {
			continue
		}
		first, ok := before.firsts[s.Metric]
		if other, differs := before.others[s.Metric]; differs && first.Value == s.Value {
			first = other
		}
		_, known := c.firsts[s.Metric]
		switch {
		case ok && first.Value != s.Value && !known:
			c.firsts[s.Metric] = first
		case !ok && before.Full:
			c.doubt(s.Metric, "not all values of the documents were read")
		case c.partly != "":
			c.doubt(s.Metric, c.partly)
		}
	}
}

// NoDocument is the warning about an output without any JSON document.
const NoDocument = "no JSON object or array found"

// TooLong is the warning about an output in which no document is read, since its end may be a part of one: the last
// request of a list would be taken for the result.
const TooLong = "longer than 64 MiB, so no JSON document is read in it"

// Documents calls found for every JSON document that was written to t, and returns the last one. It warns about
// documents that were cut off, and reads none if t is not whole.
func (c *Collector) Documents(t *jsondoc.Tail, found func(any)) any {
	if t.Dropped() {
		c.WarnOf(metrics.Cut, "", 0, TooLong)
		return nil
	}
	document, cut := jsondoc.Each(t.Bytes(), found)
	if document != nil && cut {
		c.partly = "not all documents of the output were read"
	}
	switch {
	case document == nil && cut:
		c.Warn(0, "the JSON document ends before its last bracket")
	case document == nil:
		c.Warn(0, NoDocument)
	case cut:
		c.Warn(0, "a later JSON document ends before its last bracket: the last whole one counts")
	}
	return document
}
