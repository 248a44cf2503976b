// Package tool reads the JSON files of tools that measure: AIPerf, hyperfine, pytest-benchmark, pyperf and Google
// Benchmark.
package tool

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/invalid"
	"github.com/benchgraph/benchgraph/metrics/jsondoc"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/number"
	"github.com/benchgraph/benchgraph/metrics/stated"
)

// spread matches statistics that have no mean over several benchmarks.
var spread = lazyregexp.New(`_(std|min|max|user|system)$`)

// parser reads the JSON file of one tool.
type parser struct{ name string }

// New returns the parser of the JSON file of a tool: aiperf, hyperfine, pytest, pyperf or googlebench. False: another
// tool.
func New(tool string) (metrics.Parser, bool) {
	switch tool {
	case "aiperf", "hyperfine", "pytest", "pyperf", "googlebench":
		return parser{tool}, true
	}
	return nil, false
}

// read reads a document, and reports whether the tool wrote it.
func (p parser) read(r *reading, d map[string]any) bool {
	switch p.name {
	case "aiperf":
		return readAIPerf(r, d)
	case "hyperfine":
		return readHyperfine(r, d)
	case "pytest":
		return readPytest(r, d)
	case "pyperf":
		return readPyperf(r, d)
	case "googlebench":
		return readGoogle(r, d)
	}
	return false
}

func (p parser) Parse(out metrics.Output) (metrics.Result, error) {
	var t jsondoc.Tail
	if err := t.Copy(out.Stdout); err != nil {
		return metrics.Result{}, fmt.Errorf("%s: %w", p.name, err)
	}
	var last *reading
	documents := 0
	before := collect.NewEarlier()
	read := func(document any) {
		d, ok := document.(map[string]any)
		if !ok {
			return
		}
		r := &reading{Collector: collect.New(p.name), command: stated.Requests(out.Command)}
		if !p.read(r, d) {
			return
		}
		before.NoteAll(r.Collector)
		last = r
		documents++
	}
	cut := false
	if !t.Dropped() {
		_, cut = jsondoc.Each(t.Bytes(), read)
	}
	if last == nil || t.Dropped() {
		last = &reading{Collector: collect.New(p.name)}
	}
	switch {
	case t.Dropped():
		last.WarnOf(metrics.Cut, "", 0, collect.TooLong)
	case documents == 0:
		last.Warn(0, "no JSON document of %s found", p.name)
	}
	if cut {
		last.Partly("not all documents of the output were read")
		last.Warn(0, "the last JSON document ends before its last bracket")
	}
	if documents > 1 {
		last.Warn(0, "%d documents of %s: the last one counts", documents, p.name)
	}
	last.Means(func(s metrics.Sample) string {
		part := s.Metric[strings.LastIndexByte(s.Metric, ' ')+1:]
		if part == s.Metric || spread().MatchString(part) {
			return ""
		}
		return part
	})
	last.Again(before)
	r := last.Finish()
	r.Failure = last.failure
	return r, nil
}

// reading is the content of one document.
type reading struct {
	*collect.Collector
	command int // number of requests in the command line
	failure *classify.Match
}

// fail records the failure of a document that is no result of a whole run.
func (r *reading) fail(rule, format string, args ...any) {
	if r.failure == nil {
		r.failure = invalid.New(rule, 0, "%s", lines.Plain(fmt.Sprintf(format, args...)))
	}
}

// addValue adds one number of a document.
func (r *reading) addValue(name, part, unit string, v any) {
	if v == nil {
		return
	}
	metric := named(name, part)
	text, _, err := jsondoc.Digits(v)
	if err != nil {
		r.Refuse(metric, 0, err.Error())
		return
	}
	r.Add(metric, text, unit, 0)
}

// stats adds the mean, the median and the spread of some values.
func (r *reading) stats(name, part, unit string, values []float64) {
	if len(values) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(values))
	mean := meanOf(values)
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	put := func(stat string, v float64) {
		metric := named(name, part+stat)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			r.Warn(0, "%s %v", metric, number.ErrInfinite)
			return
		}
		r.Put(metrics.Sample{Metric: metric, Value: number.Round(v), Unit: unit})
	}
	put("_mean", mean)
	put("_median", median)
	put("_min", sorted[0])
	put("_max", sorted[len(sorted)-1])
	if len(values) > 1 {
		put("_std", math.Sqrt(squares/float64(len(values)-1)))
	}
}

// named returns the name of a metric of a benchmark. The name of the only benchmark is empty.
func named(name, part string) string {
	return strings.TrimSpace(lines.Plain(lines.Clip(name, 500)) + " " + part)
}

// meanOf returns the arithmetic mean.
func meanOf(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// floats returns the finite numbers of a list.
func floats(v any) []float64 {
	var all []float64
	for _, item := range jsondoc.List(v, 1_000_000) {
		if n, ok := item.(json.Number); ok {
			if f, err := number.Parse(n.String()); err == nil {
				all = append(all, f)
			}
		}
	}
	return all
}
