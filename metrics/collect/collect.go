// Package collect gathers the samples, warnings and labels that a parser reads in an output, within bounds. It finds
// metrics with several values.
package collect

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/names"
	"github.com/benchgraph/benchgraph/metrics/number"
	"github.com/benchgraph/benchgraph/metrics/units"
)

// Bounds on a Result, whatever the output.
const (
	MaxSamples  = 10_000
	MaxWarnings = 100 // and one more that counts the rest
	MaxLabels   = 200
	MaxLabel    = 80 // bytes of a label, and of a quoted value
)

// Collector gathers a Result. A parser changes Samples, Warnings, Labels and Doubts by methods only, and may set the
// other fields itself.
type Collector struct {
	metrics.Result
	index   map[string]int            // index of the sample, by metric
	firsts  map[string]metrics.Sample // first sample of metrics that were printed again with another value
	refused map[string]Refusal        // first value that cannot be read, by metric
	dropped int                       // warnings beyond the bound
	full    bool                      // the bound on samples was reached
	partly  string                    // reason why not all documents were read; empty: all were read
	labels  map[string]bool
	order   []string
}

// New returns an empty collector for an output in a format; empty: the format is not known.
func New(format string) *Collector {
	return &Collector{Result: metrics.Result{Format: format}, index: map[string]int{},
		firsts: map[string]metrics.Sample{}, refused: map[string]Refusal{}, labels: map[string]bool{}}
}

// Warn adds a warning about a line; 0: about a document, or about the output as a whole.
func (c *Collector) Warn(line int, format string, args ...any) {
	c.WarnOf("", "", line, format, args...)
}

// WarnOf is Warn with a kind and a metric; empty: none.
func (c *Collector) WarnOf(kind, metric string, line int, format string, args ...any) {
	if len(c.Warnings) >= MaxWarnings {
		c.dropped++
		return
	}
	c.Warnings = append(c.Warnings, metrics.Warning{Line: line, Text: fmt.Sprintf(format, args...), Kind: kind,
		Metric: metric})
}

// Add adds a sample for the digits in a line, or refuses them.
func (c *Collector) Add(metric, digits, unit string, line int) {
	v, err := number.Parse(digits)
	if err != nil {
		c.Refuse(metric, line, fmt.Sprintf("%q %s", lines.Clip(digits, MaxLabel), err))
		return
	}
	c.Put(metrics.Sample{Metric: metric, Value: v, Unit: unit, Printed: strings.TrimSpace(digits), Line: line})
}

// Refusal is a value of a metric that is no sample.
type Refusal struct {
	line int    // 0: the value stands in a document
	text string // what is wrong with it
}

// String returns the place of the value and what is wrong with it.
func (r Refusal) String() string { return place(r.line) + " " + r.text }

// Refuse records that a value of a metric, in a line or in a document (line 0), is no sample.
func (c *Collector) Refuse(metric string, line int, text string) {
	c.WarnOf(metrics.Unread, metric, line, "%s: %s", metric, text)
	if _, known := c.refused[metric]; !known && len(c.refused) < MaxSamples {
		c.refused[metric] = Refusal{line, text}
	}
}

// Put adds a sample. Of two samples of a metric the later one stays, with a warning if they differ. A negative amount
// of a quantity that cannot be negative is no sample.
func (c *Collector) Put(s metrics.Sample) {
	if of := units.Quantity(s.Unit); of != "" && s.Value < 0 {
		c.Refuse(s.Metric, s.Line, fmt.Sprintf("%s %s: a %s is not negative",
			cmp.Or(s.Printed, strconv.FormatFloat(s.Value, 'g', -1, 64)), s.Unit, of))
		return
	}
	s.Metric = strings.ReplaceAll(s.Metric, "\t", " ") // the one control character that lines keep
	if i, ok := c.index[s.Metric]; ok {
		if old := c.Samples[i]; old.Value != s.Value {
			if _, known := c.firsts[s.Metric]; !known {
				c.firsts[s.Metric] = old
			}
		}
		c.Samples[i] = s
		return
	}
	if len(c.Samples) >= MaxSamples {
		if !c.full {
			c.Warn(s.Line, "more than %d metrics: the rest is left out", MaxSamples)
		}
		c.full = true
		return
	}
	c.index[s.Metric] = len(c.Samples)
	c.Samples = append(c.Samples, s)
}

// Sample returns the sample of a metric; false: there is none so far.
func (c *Collector) Sample(metric string) (s metrics.Sample, ok bool) {
	i, ok := c.index[metric]
	if ok {
		s = c.Samples[i]
	}
	return s, ok
}

// Refused returns the first value of a metric that was refused; false: there is none.
func (c *Collector) Refused(metric string) (bad Refusal, ok bool) {
	bad, ok = c.refused[metric]
	return bad, ok
}

// Partly records the reason why not all documents of the output were read: an unread one may have other values.
func (c *Collector) Partly(why string) { c.partly = why }

// LeaveOut removes the samples for which which returns true.
func (c *Collector) LeaveOut(which func(metrics.Sample) bool) {
	c.Samples = slices.DeleteFunc(c.Samples, which)
	clear(c.index)
	for i, s := range c.Samples {
		c.index[s.Metric] = i
	}
}

// Clear removes all samples.
func (c *Collector) Clear() {
	c.Samples = nil
	clear(c.index)
}

// doubt records the reason why the output has no definite value of a metric.
func (c *Collector) doubt(metric, why string) {
	if c.Doubts == nil {
		c.Doubts = map[string]string{}
	}
	c.Doubts[metric] = why
}

// Means adds the geometric mean of each group of samples. part returns the group of a sample, which is the name of its
// mean; empty: none. The mean has the unit of the first sample. If the unit of another sample does not convert, there
// is no mean.
func (c *Collector) Means(part func(metrics.Sample) string) {
	type sum struct {
		logs     float64
		n        int
		over     []string
		positive bool
		foreign  string // a unit that does not convert into the first one
		first    metrics.Sample
	}
	sums := map[string]*sum{}
	var order []string
	for _, s := range c.Samples {
		name := part(s)
		if name == "" {
			continue
		}
		t := sums[name]
		if t == nil {
			t = &sum{positive: true, first: s}
			sums[name] = t
			order = append(order, name)
		}
		value, converts := units.Convert(s.Value, s.Unit, t.first.Unit)
		t.logs, t.n = t.logs+math.Log(value), t.n+1
		if len(s.Over) > 0 {
			t.over = append(t.over, s.Over...)
		} else {
			t.over = append(t.over, s.Metric)
		}
		t.positive = t.positive && s.Value > 0
		if !converts {
			t.foreign = s.Unit
		}
	}
	for _, name := range order {
		t := sums[name]
		if _, taken := c.index[name]; taken || t.n > 1 && !t.positive {
			continue
		}
		if t.foreign != "" {
			c.WarnOf("", name, 0, "%s: no mean over values in %s and in %s", name, t.first.Unit, t.foreign)
			continue
		}
		mean := t.first
		if mean.Metric = name; t.n > 1 {
			mean = metrics.Sample{Metric: name, Value: number.Round(math.Exp(t.logs / float64(t.n))), Unit: mean.Unit}
		}
		mean.Over = t.over
		c.Put(mean)
	}
}

// Scan records the labels in front of numbers in a line: "label: 1", "label = 1", "label   1 unit".
func (c *Collector) Scan(line []byte) {
	if len(c.order) >= MaxLabels || len(line) > 1000 {
		return
	}
	start, found := 0, false
	for i := 0; i < len(line); i++ {
		if line[i] != ':' && line[i] != '=' {
			continue
		}
		value := bytes.TrimLeft(line[i+1:], " \t")
		if !number.Begins(value) || line[i] == ':' && len(value) == len(line)-i-1 &&
			bytes.ContainsAny(line[start:i], " ./0123456789") {
			continue // 12:34:56, host:8000
		}
		c.Label(string(line[start:i]))
		found = true
		i += len(line[i+1:]) - len(value)
		for i+1 < len(line) && line[i+1] != ' ' && line[i+1] != ',' && line[i+1] != ';' {
			i++
		}
		start = i + 1
	}
	if found {
		return
	}
	at := bytes.IndexAny(line, "0123456789")
	if at < 2 || line[at-1] != ' ' && line[at-1] != '\t' {
		return
	}
	rest := bytes.Fields(line[at:])
	if _, err := number.Parse(string(rest[0])); err == nil && len(rest) <= 2 {
		c.Label(string(line[:at]))
	}
}

// Label records one label. The text before a separator or a gap does not belong to it.
func (c *Collector) Label(text string) {
	text = strings.TrimRight(text, " \t-+")
	for _, gap := range []string{",", ";", "|", "\t", "  "} {
		text = text[strings.LastIndex(text, gap)+1:]
	}
	text = strings.TrimRight(strings.TrimLeft(text, " \"'([{*#>"), " \"'")
	if text == "" || len(text) > MaxLabel || c.labels[text] || len(c.order) >= MaxLabels {
		return
	}
	if words := names.Words(text); len(words) == 0 || words[0][0] <= '9' {
		return
	}
	c.labels[text] = true
	c.order = append(c.order, text)
}

// Ending warns about lines that were not read to their end, or have none.
func (c *Collector) Ending(l *lines.Reader) {
	if l.Cut > 0 {
		c.WarnOf(metrics.Cut, "", l.Cut,
			"longer than %d KiB: its rest, and that of any further line of this length, was not read", lines.Max>>10)
	}
	if l.Unterminated && len(c.Samples) > 0 && c.Samples[len(c.Samples)-1].Line == l.Number {
		c.WarnOf(metrics.Cut, c.Samples[len(c.Samples)-1].Metric, l.Number,
			"the output ends inside this line: its last number may be cut off")
	}
}

// Finish adds the warnings that need the whole output, and returns the result. The collector must not be used after
// that.
func (c *Collector) Finish() metrics.Result {
	for _, s := range c.Samples {
		first, differs := c.firsts[s.Metric]
		bad, other := c.refused[s.Metric]
		text := ""
		switch {
		case differs:
			text = fmt.Sprintf("%s was printed more than once, first as %s in %s and last as %s",
				s.Metric, first.Printed, place(first.Line), s.Printed)
		case other:
			text = fmt.Sprintf("%s was printed more than once, as %s, and in %s", s.Metric,
				cmp.Or(s.Printed, strconv.FormatFloat(s.Value, 'g', -1, 64)), bad)
		default:
			continue
		}
		c.WarnOf(metrics.Repeated, s.Metric, s.Line, "%s", text)
		c.doubt(s.Metric, text)
	}
	if c.dropped > 0 {
		c.Warnings = append(c.Warnings, metrics.Warning{Text: fmt.Sprintf("%d more warnings", c.dropped)})
	}
	c.Labels = make([]string, 0, len(c.Samples)+len(c.order))
	for _, s := range c.Samples {
		c.Labels = append(c.Labels, s.Metric)
	}
	c.Labels = append(c.Labels, c.order...)
	c.Labels = c.Labels[:min(len(c.Labels), MaxLabels)]
	return c.Result
}

// place names a line of the output; 0 is a document.
func place(line int) string {
	if line == 0 {
		return "an earlier document"
	}
	return fmt.Sprintf("line %d", line)
}
