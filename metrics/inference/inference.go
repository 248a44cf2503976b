// Package inference reads the outputs and the JSON files of the benchmarks of vLLM and SGLang, of all versions, and
// finds those that are no valid result.
package inference

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/invalid"
	"github.com/benchgraph/benchgraph/metrics/jsondoc"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/number"
	"github.com/benchgraph/benchgraph/metrics/stated"
)

// parser reads the outputs and JSON files of the benchmarks of vLLM and SGLang. Both print the same labels, so one
// parser serves both. tool is the declared one; the output may name the other.
type parser struct{ tool string }

// New returns the parser of a tool, vllm or sglang. The tool is the default for outputs that do not name one.
func New(tool string) metrics.Parser { return parser{tool} }

func (p parser) Parse(out metrics.Output) (metrics.Result, error) {
	r := newReading(p.tool)
	var t jsondoc.Tail
	l := lines.New(io.TeeReader(out.Stdout, jsondoc.FromBrace(&t)))
	for l.Next() {
		r.line(l.Bytes(), l.Number)
	}
	if err := l.Err(); err != nil {
		return metrics.Result{}, fmt.Errorf("%s: %w", p.tool, err)
	}
	if l.Cut > 0 && len(r.Samples) > 0 {
		r.Warn(l.Cut, "longer than %d KiB: its rest, and that of any further line of this length, was not read",
			lines.Max>>10)
	}
	r.ended = !l.Unterminated || l.Number != r.last.number
	d := r.documents(t.Bytes())
	if t.Dropped() {
		cmp.Or(d, r).WarnOf(metrics.Cut, "", 0, "longer than %d MiB: only its end was searched for a document",
			jsondoc.MaxTail>>20)
	}
	if d != nil {
		d.asked.command = stated.Requests(out.Command)
		if r.tables > 0 && r.mode != d.mode { // a server can make its client print a document
			d.conflict = invalid.New(invalid.Ambiguous, 0, "a document of mode %s beside a table of mode %s", d.mode,
				r.mode)
		}
		for _, s := range r.Samples {
			if _, both := d.Sample(s.Metric); both && r.marked {
				d.sample(s.Metric, s.Printed, s.Unit, s.Line)
			}
		}
		return d.result(), nil
	}
	if !r.marked && len(r.pairs) == 0 && isDocument(t.Bytes()) {
		r.cut = invalid.New(invalid.Incomplete, r.last.number, "the JSON document ends before its last bracket")
	}
	r.asked.command = stated.Requests(out.Command)
	return r.result(), nil
}

// reading is the state of the parser after some lines, or after a document.
type reading struct {
	*collect.Collector
	tool    string
	mode    string // serving, throughput, …; empty: nothing was recognised yet
	labels  map[string]label
	prefix  string // prefix of the metrics in the current section
	section section
	phase   string   // phase of a startup benchmark: cold or warm
	group   string   // the startup metric whose percentiles come next
	columns []string // columns of the table of a multi-turn benchmark

	inTable bool // the current line is between a header and its closing rule
	tables  int  // number of headers
	header  int  // line of the first header
	closed  bool // the last table has its closing rule
	turns   bool // the table is about conversations
	backend string
	vague   bool // other programs print the current line, too
	marked  bool // some line is printed by no other program
	ended   bool // the last line has its end
	last    lastLine
	missed  lastLine // first line that names successful requests and was not understood

	asked     asked
	pairs     map[string]any // lines of a document whose brackets were cut off
	opened    int            // line of the bracket that began such a document; 0: none
	begun     bool           // the warm-up of one_batch is over
	cases     int            // of one_batch_server
	conflict  *classify.Match
	foreign   *classify.Match
	partly    *classify.Match // requests or conversations that failed, by a list of them
	incorrect *classify.Match // a unit that is known to be wrong
	cut       *classify.Match
}

// section is the part of an output that the current line is in.
type section int

const (
	normal      section = iota
	warming             // a warm-up run
	speculative         // Speculative Decoding
	startup             // STARTUP TIME BENCHMARK RESULTS
	batch               // one case of one_batch_server
	other               // a section of a table that gives no metric
)

// lastLine is the last line that is not blank.
type lastLine struct {
	number int
	text   string
	short  bool // its number has fewer decimals than the tool prints
	whole  bool // its number has no decimals: nothing shows where it ends
	padded bool // spaces follow
	pair   bool // a key and a value of a document
	metric string
}

// asked holds the number of requests that were asked for, from each source; 0: the source does not tell.
type asked struct {
	command  int  // the command line of the benchmark
	declared int  // num_prompts in the arguments that were printed, or in the document
	line     int  // of declared; 0: the document
	bar      int  // the total of the last progress bar before the table
	after    int  // the total of the last progress bar after the table
	ofOthers bool // declared does not apply to this data set
}

func newReading(tool string) *reading {
	r := &reading{
		Collector: collect.New(""), tool: tool, labels: map[string]label{}, pairs: map[string]any{},
	}
	for _, l := range labels() {
		r.labels[l.label] = l
	}
	return r
}

// line reads one line and reports whether only these benchmarks print such a line.
func (r *reading) line(b []byte, n int) bool {
	if len(b) == 0 {
		return false
	}
	if lines.EngineProgress(b) {
		return false
	}
	text := lines.WithoutMarks(string(b[:min(len(b), 16<<10)]))
	if at, total, ok := progress(text); ok {
		r.bar(total)
		text = lines.WithoutMarks(text[at:])
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return false
	}
	r.vague = false
	r.last = lastLine{number: n, text: text, padded: b[len(b)-1] == ' '}
	known := r.read(text, n)
	row := bytes.HasSuffix(bytes.TrimRight(b, " "), []byte("|")) && bytes.Count(b, []byte("|")) > 2
	r.vague = r.vague || row && !r.inTable
	if !known {
		r.Scan(b)
		r.arguments(text, n)
		if r.missed.number == 0 && strings.Contains(strings.ToLower(text), "successful requests") {
			r.missed = r.last
		}
	}
	if known && !r.vague {
		r.marked = true
	}
	return known && !r.vague
}

// read reads a line without its marks.
func (r *reading) read(text string, n int) bool {
	if title, rule := lines.Ruled(text); rule {
		return r.rule(title)
	}
	if r.pair(text, n) {
		r.vague = true
		return true
	}
	if r.dictionary(text) || r.startup(text, n) || r.statistics(text, n) {
		return true
	}
	label, rest, ok := strings.Cut(text, ":")
	if !ok {
		return r.unlabelled(text, n)
	}
	name := strings.ToLower(strings.Join(strings.Fields(label), " "))
	rest = strings.TrimSpace(rest)
	switch {
	case name == "backend" && r.inTable:
		r.tool, r.backend = "sglang", strings.ToLower(rest)
		return true
	case name == "conversations completed/total" && r.inTable:
		return r.conversations(rest, n)
	case name == "time to execute all requests":
		digits, behind := number.Leading(rest)
		return digits != "" && strings.HasPrefix(behind, " secs") && r.duration("long-document-qa", digits, n)
	case name == "throughput":
		return r.throughput(rest, n)
	case strings.HasSuffix(name, "latency") && r.offlineLatency(name, rest, n):
		return true
	}
	return r.oneBatch(name, rest, n) || r.section != other && r.labelled(name, rest, n)
}

// labelled reads a line of a table.
func (r *reading) labelled(name, rest string, n int) bool {
	if metric, unit, after, ok := latencyLabel(name); ok {
		return r.value(label{metric: metric, unit: unit, after: after}, rest, n)
	}
	l, ok := r.labels[name]
	if !ok && r.inTable {
		r.otherUnit(name, rest, n)
	}
	if m := tablePosition().FindStringSubmatch(name); m != nil {
		metric := "spec_decode_acceptance_position_" + m[1]
		l, ok = label{metric: metric, unit: "%", within: speculative}, true
	}
	if !ok || l.table && !r.inTable || l.within != normal && l.within != r.section {
		return false
	}
	r.vague = l.common
	if name == "concurrency" && r.turns {
		return true // the requested number of clients, and not the measured one
	}
	return r.value(l, rest, n)
}

// value adds the number after a label. It reports whether the line belongs to the benchmark.
func (r *reading) value(l label, rest string, n int) bool {
	if r.section == warming {
		return true
	}
	digits, behind := number.Leading(rest)
	if digits == "" {
		if rest != "" && (r.inTable || !l.common) {
			r.unreadable(l.metric, rest, n)
		}
		return false
	}
	if l.metric == "successful_requests" && strings.HasPrefix(behind, "/") {
		r.foreign = invalid.New(invalid.Foreign, n,
			"%q: another benchmark's table, which counts its requests in this way", rest)
		return true
	}
	if l.after != "" && !strings.HasPrefix(strings.TrimSpace(behind), l.after) {
		if behind == "" || strings.HasPrefix(l.after, strings.TrimSpace(behind)) {
			r.truncated(l.metric, digits+behind, n)
			return true
		}
		return false
	}
	if glued := behind != "" && l.after == "" && behind[0] != ' ' && behind[0] != '\t' && behind != "%"; glued {
		r.unreadable(l.metric, digits+behind, n)
		return !l.common
	}
	r.setMode("serving")
	r.sample(r.prefix+l.metric, digits, l.unit, n)
	r.last.metric = r.prefix + l.metric
	_, decimals, fraction := strings.Cut(digits, ".")
	finite := !strings.ContainsAny(digits, "nN")
	r.last.short = finite && l.after == "" && !l.any && (fraction && len(decimals) < 2 || !fraction && !l.count)
	r.last.whole = behind == "" && (l.any || !fraction && l.count)
	return true
}

// unlabelled reads a line without a colon.
func (r *reading) unlabelled(text string, n int) bool {
	if digits, ok := strings.CutPrefix(text, "cost time "); ok {
		if d, behind := number.Leading(digits); d != "" && (behind == "" || behind[0] == ' ') {
			return r.duration("prefix-caching", d, n)
		}
	}
	if rest, ok := strings.CutPrefix(text, "correct_rate(%)"); ok {
		return r.value(label{metric: "correct_rate", unit: "%", any: true}, strings.TrimSpace(rest), n)
	}
	if strings.HasPrefix(text, "Warmup ...") {
		r.section = warming
		return false
	}
	if strings.HasPrefix(text, "Benchmark ...") {
		r.section = normal
		if !r.begun && r.mode == "one_batch" { // the lines so far are those of the warm-up
			r.conflict = nil
			r.Clear()
		}
		r.begun = true
	}
	return false
}

// duration adds the duration of a run that prints nothing else.
func (r *reading) duration(mode, digits string, n int) bool {
	if r.section == warming {
		return true
	}
	r.mode = mode
	r.sample("benchmark_duration", digits, "s", n)
	r.last.metric, r.last.short = "benchmark_duration", len(digits) < 12 && mode == "prefix-caching"
	return true
}

// rule reads a line of equals signs or hyphens with a title in it.
func (r *reading) rule(title string) bool {
	lower := strings.ToLower(title)
	switch {
	case strings.HasSuffix(lower, "benchmark result"):
		r.inTable, r.closed, r.prefix, r.section = true, false, "", normal
		if r.tables++; r.tables == 1 {
			r.header = r.last.number
		}
		r.mode, r.turns = "serving", strings.HasPrefix(lower, "multi-turn")
		if strings.HasPrefix(lower, "offline throughput") {
			r.tool, r.mode = "sglang", "offline_throughput"
		}
		return true
	case lower == "steady-state metrics":
		r.prefix, r.section = "steady_state_", normal
	case strings.HasPrefix(lower, "overall (all turns)"):
		r.prefix, r.section = "", normal
	case strings.HasPrefix(lower, "turn ") && r.turns:
		number, _, _ := strings.Cut(lower[len("turn "):], " ")
		if i, err := strconv.Atoi(number); err == nil && i > 0 {
			r.prefix = fmt.Sprintf("turn_%d_", i)
		}
	case lower == "warm up":
		r.section = warming
	case lower == "start generating":
		r.section = normal
	case lower == "speculative decoding":
		r.section = speculative
	case lower == "diffusion decoding" || lower == "probe requests":
		r.section = other
	case lower == "=":
		r.closed = r.inTable || r.closed
		r.inTable, r.prefix, r.section = false, "", normal
	case lower != "":
		r.section = normal
	}
	return false
}

// conversations reads the number of completed conversations of a multi-turn benchmark.
func (r *reading) conversations(rest string, n int) bool {
	whole, total, ok := strings.Cut(rest, "/")
	a, errA := strconv.Atoi(strings.TrimSpace(whole))
	b, errB := strconv.Atoi(strings.TrimSpace(total))
	if err := errors.Join(errA, errB); !ok || err != nil {
		return false
	}
	if a < b && r.partly == nil {
		r.partly = invalid.New(invalid.RequestsFailed, n, "%d of %d conversations were completed", a, b)
	}
	return true
}

// bar stores the total of a progress bar. Bars of serving benchmarks have no description.
func (r *reading) bar(total int) {
	if total == 0 {
		return
	}
	if r.tables == 0 {
		r.asked.bar = total
	} else {
		r.asked.after = total
	}
}
