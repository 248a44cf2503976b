package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/metrics/invalid"
	"github.com/benchgraph/benchgraph/metrics/jsondoc"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/number"
)

// documentFormat is the JSON file of one tool.
type documentFormat struct {
	name string
	mode string // what it measures, of a tool that inference reads
	// those that stand in it, by which it is recognised; not all of them at its top
	keys []string
	read func(r *toolReading, d map[string]any) bool // of the other tools
}

// documentFormats is the table of the JSON files that are read. Of several rows that fit, the first one counts.
var documentFormats = sync.OnceValue(func() []documentFormat {
	return []documentFormat{
		{name: "sglang", mode: "serving", keys: []string{"sharegpt_output_len", "request_rate"}},
		{name: "sglang", mode: "serving", keys: []string{"dataset_name", "completed", "request_rate"}},
		{name: "vllm", mode: "serving", keys: []string{"completed", "num_prompts"}},
		{name: "vllm", mode: "serving", keys: []string{"completed", "duration", "model_id"}},
		{name: "vllm", mode: "throughput", keys: []string{"elapsed_time", "requests_per_second"}},
		{name: "vllm", mode: "latency", keys: []string{"avg_latency", "latencies"}},
		{name: "vllm", mode: "latency", keys: []string{"avg_latency", "percentiles"}},
		{name: "vllm", mode: "startup", keys: []string{"cold_startup_percentiles"}},
		{name: "vllm", mode: "startup", keys: []string{"avg_cold_startup_time"}},
		{name: "sglang", mode: "one_batch", keys: []string{"prefill_latency", "overall_throughput"}},
		{name: "sglang", mode: "one_batch_server", keys: []string{"batch_size", "overall_throughput"}},
		{name: "sglang", mode: "one_batch_server", keys: []string{"batch_size", "latency", "output_throughput"}},
		{name: "sglang", mode: "offline_throughput", keys: []string{"total_latency", "total_output_tokens"}},

		{name: "aiperf", keys: []string{"input_config", "unit", "avg"}, read: readAIPerf},
		{name: "aiperf", keys: []string{"aiperf_version", "unit", "avg"}, read: readAIPerf},
		{name: "hyperfine", keys: []string{"results", "command", "mean", "user", "system"}, read: readHyperfine},
		{name: "pytest", keys: []string{"machine_info", "benchmarks"}, read: readPytest},
		{name: "pyperf", keys: []string{"benchmarks", "metadata", "runs"}, read: readPyperf},
		{name: "googlebench", keys: []string{"benchmarks", "real_time", "time_unit"}, read: readGoogle},
	}
})

// keySearch recognises the tool that wrote a document by the keys in it.
type keySearch struct {
	formats []documentFormat
	seen    map[string]bool
}

func newKeySearch() *keySearch {
	s := &keySearch{formats: documentFormats(), seen: map[string]bool{}}
	for _, f := range s.formats {
		for _, key := range f.keys {
			s.seen[key] = false
		}
	}
	return s
}

// line looks at one line. It returns a format as soon as all of the format's keys were seen.
func (s *keySearch) line(b []byte) string {
	if !bytes.Contains(b, []byte(`":`)) {
		return ""
	}
	more := false
	for key, seen := range s.seen {
		if !seen && bytes.Contains(b, []byte(`"`+key+`":`)) {
			s.seen[key], more = true, true
		}
	}
	if !more {
		return ""
	}
	for _, f := range s.formats {
		if !slices.ContainsFunc(f.keys, func(key string) bool { return !s.seen[key] }) {
			return f.name
		}
	}
	return ""
}

// spread matches what has no mean over several benchmarks.
var spread = lazyregexp.New(`_(std|min|max|user|system)$`)

// documentParser reads the JSON file of one tool.
type documentParser struct{ name string }

func (p documentParser) Parse(out Output) (Result, error) {
	var t tail
	if _, err := io.Copy(&t, out.Stdout); err != nil {
		return Result{}, fmt.Errorf("%s: %w", p.name, err)
	}
	t.trim()
	var last *toolReading
	documents := 0
	before := newEarlier()
	_, cut := jsondoc.Each(t.buf, func(document any) {
		d, ok := document.(map[string]any)
		if !ok {
			return
		}
		for _, f := range documentFormats() {
			r := &toolReading{collector: newCollector(p.name), command: askedBy(out.Command)}
			if f.name == p.name && f.read(r, d) {
				for _, s := range r.Samples {
					before.note(s.Metric, json.Number(strconv.FormatFloat(s.Value, 'g', -1, 64)))
				}
				for metric, bad := range r.unread {
					before.note(metric, bad.text)
				}
				last = r
				documents++
				return
			}
		}
	})
	if last == nil {
		last = &toolReading{collector: newCollector(p.name)}
		last.warn(0, "no JSON document of %s found", p.name)
	}
	if cut {
		last.partly = "not all documents of the output were read"
		last.warn(0, "the last JSON document ends before its last bracket")
	}
	if documents > 1 {
		last.warn(0, "%d documents of %s: the last one counts", documents, p.name)
	}
	last.means(func(s Sample) string {
		part := s.Metric[strings.LastIndexByte(s.Metric, ' ')+1:]
		if part == s.Metric || spread().MatchString(part) {
			return ""
		}
		return part
	})
	last.again(before)
	r := last.finish()
	r.Failure = last.failure
	return r, nil
}

// toolReading is the content of one document.
type toolReading struct {
	*collector
	command int // how many requests the command line asks for
	failure *classify.Match
}

// fail notes that the document is no result of a whole run.
func (r *toolReading) fail(rule, format string, args ...any) {
	if r.failure == nil {
		r.failure = invalid.New(rule, 0, "%s", lines.Plain(fmt.Sprintf(format, args...)))
	}
}

// take adds one number of a document.
func (r *toolReading) take(name, part, unit string, v any) {
	if v == nil {
		return
	}
	metric := named(name, part)
	text, _, err := digits(v)
	if err != nil {
		r.refuse(metric, 0, err.Error())
		return
	}
	r.add(metric, text, unit, 0)
}

// stats adds the mean, the median and the spread of some values.
func (r *toolReading) stats(name, part, unit string, values []float64) {
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
			r.warn(0, "%s %v", metric, number.ErrInfinite)
			return
		}
		r.put(Sample{Metric: metric, Value: number.Round(v), Unit: unit})
	}
	put("_mean", mean)
	put("_median", median)
	put("_min", sorted[0])
	put("_max", sorted[len(sorted)-1])
	if len(values) > 1 {
		put("_std", math.Sqrt(squares/float64(len(values)-1)))
	}
}

// named returns the name of a metric of one benchmark among several; without a name, of the only benchmark.
func named(name, part string) string {
	return strings.TrimSpace(lines.Plain(lines.Clip(name, 500)) + " " + part)
}

// meanOf is the arithmetic mean.
func meanOf(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// floats are the finite numbers of a list.
func floats(v any) []float64 {
	var all []float64
	for _, item := range list(v, 1_000_000) {
		if n, ok := item.(json.Number); ok {
			if f, err := number.Parse(n.String()); err == nil {
				all = append(all, f)
			}
		}
	}
	return all
}

func text(v any) string { s, _ := v.(string); return s }

func object(v any) map[string]any { d, _ := v.(map[string]any); return d }
