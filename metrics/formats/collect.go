package formats

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/names"
	"github.com/benchgraph/benchgraph/metrics/number"
	"github.com/benchgraph/benchgraph/metrics/units"
)

// Bounds on what one output may make a Result hold.
const (
	maxSamples  = 10_000
	maxWarnings = 100
	maxLabels   = 200
	maxLabel    = 80 // bytes
)

// collector gathers a Result.
type collector struct {
	metrics.Result
	index   map[string]int            // of a sample, by metric
	firsts  map[string]metrics.Sample // of the metrics that were printed again with another value
	unread  map[string]unread         // by metric, the first value that nobody can read
	dropped int                       // warnings beyond the bound
	full    bool                      // the bound on samples was met
	partly  string                    // why not all documents were read; empty: they were
	labels  map[string]bool
	order   []string
}

func newCollector(format string) *collector {
	return &collector{Result: metrics.Result{Format: format}, index: map[string]int{},
		firsts: map[string]metrics.Sample{}, unread: map[string]unread{}, labels: map[string]bool{}}
}

func (c *collector) warn(line int, format string, args ...any) {
	c.warnOf("", "", line, format, args...)
}

// warnOf warns of a kind, about a metric.
func (c *collector) warnOf(kind, metric string, line int, format string, args ...any) {
	if len(c.Warnings) >= maxWarnings {
		c.dropped++
		return
	}
	c.Warnings = append(c.Warnings, metrics.Warning{Line: line, Text: fmt.Sprintf(format, args...), Kind: kind,
		Metric: metric})
}

// add makes a sample of digits that stand in a line.
func (c *collector) add(metric, digits, unit string, line int) {
	v, err := number.Parse(digits)
	if err != nil {
		c.refuse(metric, line, fmt.Sprintf("%q %s", lines.Clip(digits, maxLabel), err))
		return
	}
	c.put(metrics.Sample{Metric: metric, Value: v, Unit: unit, Printed: strings.TrimSpace(digits), Line: line})
}

// unread is a value of a metric that is no sample.
type unread struct {
	line int
	text string // what is wrong with it
}

// refuse notes that a value of a metric stands in a line, or in a document, and is no sample.
func (c *collector) refuse(metric string, line int, text string) {
	c.warnOf(metrics.Unread, metric, line, "%s: %s", metric, text)
	if _, known := c.unread[metric]; !known && len(c.unread) < maxSamples {
		c.unread[metric] = unread{line, text}
	}
}

// put keeps a sample. Of two for the same metric the later one stays, with a warning when they differ. Less than
// nothing of what can only be more is no sample.
func (c *collector) put(s metrics.Sample) {
	if of := units.Quantity(s.Unit); of != "" && s.Value < 0 {
		c.refuse(s.Metric, s.Line, fmt.Sprintf("%s %s: a %s is not negative",
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
	if len(c.Samples) >= maxSamples {
		if !c.full {
			c.warn(s.Line, "more than %d metrics: the rest is left out", maxSamples)
		}
		c.full = true
		return
	}
	c.index[s.Metric] = len(c.Samples)
	c.Samples = append(c.Samples, s)
}

// number returns the value of a metric.
func (c *collector) number(metric string) (v float64, ok bool) {
	i, ok := c.index[metric]
	if !ok {
		return 0, false
	}
	return c.Samples[i].Value, true
}

// again notes the metrics of documents of which an earlier document of the output has another value, or may have one.
func (c *collector) again(before earlier) {
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
		case !ok && before.full:
			c.doubt(s.Metric, "not all values of the documents were read")
		case c.partly != "":
			c.doubt(s.Metric, c.partly)
		}
	}
}

// doubt notes why the output does not say one value of a metric.
func (c *collector) doubt(metric, why string) {
	if c.Doubts == nil {
		c.Doubts = map[string]string{}
	}
	c.Doubts[metric] = why
}

// means adds, for every name, the geometric mean over the samples that part assigns to it.
func (c *collector) means(part func(metrics.Sample) string) {
	type sum struct {
		logs     float64
		n        int
		over     []string
		positive bool
		last     metrics.Sample
	}
	sums := map[string]*sum{}
	var names []string
	for _, s := range c.Samples {
		name := part(s)
		if name == "" {
			continue
		}
		t := sums[name]
		if t == nil {
			t = &sum{positive: true}
			sums[name] = t
			names = append(names, name)
		}
		t.logs, t.n, t.last = t.logs+math.Log(s.Value), t.n+1, s
		if len(s.Over) > 0 {
			t.over = append(t.over, s.Over...)
		} else {
			t.over = append(t.over, s.Metric)
		}
		t.positive = t.positive && s.Value > 0
	}
	for _, name := range names {
		t := sums[name]
		if _, taken := c.index[name]; taken || t.n > 1 && !t.positive {
			continue
		}
		mean := t.last
		if mean.Metric = name; t.n > 1 {
			mean = metrics.Sample{Metric: name, Value: number.Round(math.Exp(t.logs / float64(t.n))), Unit: t.last.Unit}
		}
		mean.Over = t.over
		c.put(mean)
	}
}

// scan notes the labels that stand before numbers in a line: "label: 1", "label = 1", "label   1 unit".
func (c *collector) scan(line []byte) {
	if len(c.order) >= maxLabels || len(line) > 1000 {
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
		c.label(string(line[start:i]))
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
		c.label(string(line[:at]))
	}
}

// label notes one label; what stands before a separator or a gap belongs to something else.
func (c *collector) label(text string) {
	text = strings.TrimRight(text, " \t-+")
	for _, gap := range []string{",", ";", "|", "\t", "  "} {
		text = text[strings.LastIndex(text, gap)+1:]
	}
	text = strings.TrimRight(strings.TrimLeft(text, " \"'([{*#>"), " \"'")
	if text == "" || len(text) > maxLabel || c.labels[text] || len(c.order) >= maxLabels {
		return
	}
	if words := names.Words(text); len(words) == 0 || words[0][0] <= '9' {
		return
	}
	c.labels[text] = true
	c.order = append(c.order, text)
}

// ending warns about what was wrong with the lines as such.
func (c *collector) ending(l *lines.Reader) {
	if l.Cut > 0 {
		c.warnOf(metrics.Cut, "", l.Cut,
			"longer than %d KiB: its rest, and that of any further line of this length, was not read", lines.Max>>10)
	}
	if l.Unterminated && len(c.Samples) > 0 && c.Samples[len(c.Samples)-1].Line == l.Number {
		c.warnOf(metrics.Cut, c.Samples[len(c.Samples)-1].Metric, l.Number,
			"the output ends inside this line: its last number may be cut off")
	}
}

func (c *collector) finish() metrics.Result {
	for _, s := range c.Samples {
		first, differs := c.firsts[s.Metric]
		bad, other := c.unread[s.Metric]
		text := ""
		switch {
		case differs:
			text = fmt.Sprintf("%s was printed more than once, first as %s in %s and last as %s",
				s.Metric, first.Printed, place(first.Line), s.Printed)
		case other:
			text = fmt.Sprintf("%s was printed more than once, as %s, and in %s %s", s.Metric,
				cmp.Or(s.Printed, strconv.FormatFloat(s.Value, 'g', -1, 64)), place(bad.line), bad.text)
		default:
			continue
		}
		c.warnOf(metrics.Repeated, s.Metric, s.Line, "%s", text)
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
	c.Labels = c.Labels[:min(len(c.Labels), maxLabels)]
	return c.Result
}

// place names a line of the output; 0 is a document.
func place(line int) string {
	if line == 0 {
		return "an earlier document"
	}
	return fmt.Sprintf("line %d", line)
}
