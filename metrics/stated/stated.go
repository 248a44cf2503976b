// Package stated reads the settings and the amounts of work that an output states about its own run.
package stated

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/metrics/jsondoc"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/names"
	"github.com/benchgraph/benchgraph/metrics/number"
	"github.com/benchgraph/benchgraph/metrics/origin"
)

// Statement holds the amounts of work and the settings that an output states about its own run. Both sides of a
// comparison must agree in them.
type Statement struct {
	// Counts are the last printed amounts by metric, as in docs/formats.md: requests, tokens, benchmark_duration.
	Counts map[string]float64
	// Complaints are the first different lines of errors and warnings, with # for digits.
	Complaints []string
	// Settings are values by name: model_id, request_rate, …; several values of one setting are joined by "; ".
	Settings map[string]string
}

// Bounds on the settings of one output.
const (
	maxSetting  = 200 // bytes of a value
	maxSettings = 16  // values of one setting
	maxStated   = 512 // bytes of a line; longer lines are skipped

	maxItems     = 10_000 // items of a document that is a list
	maxArguments = 200    // of one line
)

// Settings returns the names of all settings that are compared.
func Settings() []string { return slices.Collect(maps.Values(settingNames())) }

// Read reads the statement of an output: from lines with the labels of known clients, from the arguments that a client
// printed, and from JSON documents. An output that states nothing is no error.
func Read(r io.Reader) (Statement, error) {
	s := reading{counts: map[string]float64{}, settings: map[string]map[string]bool{}, countOf: countNames(),
		settingOf: settingNames()}
	var t jsondoc.Tail
	l := lines.New(io.TeeReader(r, jsondoc.FromBrace(&t)))
	for l.Next() {
		s.line(l.Bytes())
	}
	if err := l.Err(); err != nil {
		return Statement{}, err
	}
	if s.keyed(t.Bytes()) {
		jsondoc.Each(t.Bytes(), func(document any) {
			for _, item := range jsondoc.List(document, maxItems) {
				s.document(jsondoc.Object(item))
			}
			s.document(jsondoc.Object(document))
		})
	}
	if s.procs != "" && s.procs != mixed {
		s.set("gomaxprocs", s.procs[1:])
	}
	return s.statement(), nil
}

// Merge adds the statement of another output of the same run. If both have a count, the one of s stays.
func (s *Statement) Merge(other Statement) {
	counts, settings := map[string]float64{}, map[string]string{}
	maps.Copy(counts, other.Counts)
	maps.Copy(counts, s.Counts)
	maps.Copy(settings, s.Settings)
	for name, value := range other.Settings {
		values := append(strings.Split(settings[name], "; "), strings.Split(value, "; ")...)
		values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
		slices.Sort(values)
		settings[name] = strings.Join(slices.Compact(values), "; ")
	}
	s.Counts, s.Settings = counts, settings
	for _, line := range other.Complaints {
		s.Complaints = complain(s.Complaints, line)
	}
}

// reading is the state of Read after some lines.
type reading struct {
	counts     map[string]float64
	settings   map[string]map[string]bool
	inTable    bool
	complaints []string
	benches    int
	procs      string // -N at the end of the names of all Go benchmarks so far, or mixed

	countOf, settingOf map[string]string // the tables of names
}

// mixed is the value of procs if the suffixes differ.
const mixed = "?"

func (s *reading) statement() Statement {
	made := Statement{Counts: s.counts, Settings: map[string]string{}, Complaints: s.complaints}
	for name, values := range s.settings {
		made.Settings[name] = strings.Join(slices.Sorted(maps.Keys(values)), "; ")
	}
	return made
}

var (
	done   = lazyregexp.New(`^([0-9]+) requests completed in ([0-9.]+) seconds$`)
	amount = lazyregexp.New(`^([0-9]+) +(parallel clients|bytes payload|Threads|Connections per ` +
		`thread|Requests per client)$`)
	label     = lazyregexp.New(`^"?([A-Za-z][A-Za-z0-9 _()/-]{1,48}?)"?\s*[:=]\s*(\S.*)$`)
	argument  = lazyregexp.New(`[(, ]([a-z_]+)=('[^']{0,200}'|"[^"]{0,200}"|[^,'"()\[\] ]{1,40})`)
	benchmark = lazyregexp.New(`^Benchmark\S*?(-[0-9]+)?\s+[0-9]+\s+[0-9.]`)
)

func (s *reading) line(b []byte) {
	if complains(b) {
		s.complaints = complain(s.complaints, strings.TrimSpace(string(b[:min(len(b), maxStated)])))
	}
	if len(b) < 6 || lines.EngineProgress(b) {
		return
	}
	if bytes.Contains(b, []byte("Namespace(")) {
		s.arguments(string(b[:min(len(b), 16<<10)]))
		return
	}
	if len(b) > maxStated {
		return
	}
	text := strings.TrimSpace(lines.WithoutMarks(string(b)))
	if title, rule := lines.Ruled(text); rule {
		s.inTable = strings.HasSuffix(strings.ToLower(title), "benchmark result") || s.inTable && title != "="
		return
	}
	switch first := text[:min(len(text), 1)]; {
	case strings.HasPrefix(text, "Benchmark"):
		if m := benchmark().FindStringSubmatch(text); m != nil {
			s.bench(m[1])
			return
		}
	case strings.HasPrefix(text, "goos: "), strings.HasPrefix(text, "goarch: "), strings.HasPrefix(text, "pkg: "):
		name, value, _ := strings.Cut(text, ": ")
		s.set(name, value)
		return
	case first >= "0" && first <= "9":
		if m := done().FindStringSubmatch(text); m != nil {
			s.set("requests", m[1])
			if v, err := number.Parse(m[2]); err == nil { // tests run one after the other
				s.counts["benchmark_duration"] += v
			}
		} else if m := amount().FindStringSubmatch(text); m != nil {
			s.set(names.Slug(m[2]), m[1])
		}
		return
	}
	if !strings.ContainsAny(text, ":=") {
		return
	}
	if m := label().FindStringSubmatch(text); m != nil {
		s.labelled(names.Slug(m[1]), strings.TrimRight(m[2], " ,"))
	}
}

// bench stores the number of processors in the name of a Go benchmark.
func (s *reading) bench(suffix string) {
	if s.benches++; s.benches == 1 {
		s.procs = suffix
	} else if s.procs != suffix {
		s.procs = mixed
	}
}

// labelled reads a label and the text behind it.
func (s *reading) labelled(label, rest string) {
	if metric, ok := s.countOf[label]; ok {
		digits, behind := number.Leading(rest)
		behind = strings.TrimSpace(behind)
		if v, err := number.Divided(digits); err == nil && (behind == "" || strings.HasPrefix(behind, "(") ||
			behind == "requests" || behind == "s" && metric == "benchmark_duration") {
			s.counts[metric] = v
		}
		return
	}
	setting, ok := s.settingOf[label]
	if !ok {
		return
	}
	if s.inTable && setting == "backend" {
		s.set(setting, rest)
		return
	}
	digits, behind := number.Leading(rest)
	behind = strings.TrimSpace(behind)
	switch kindOf(setting) {
	case ofWord:
		if digits == "" && !strings.Contains(rest, " ") {
			s.set(setting, rest)
		}
	case ofNumber:
		if behind == "" || strings.HasPrefix(behind, "(") {
			s.set(setting, digits)
		}
	case ofWhole:
		if behind == "" && (wholeNumber(digits) || strings.HasPrefix(label, "traffic") ||
			strings.HasSuffix(label, "configured_rps")) {
			s.set(setting, digits)
		}
	}
}

// wholeNumber reports whether digits write a whole number, or infinity.
func wholeNumber(digits string) bool {
	v, err := strconv.ParseFloat(digits, 64)
	return err == nil && (math.IsInf(v, 0) || v == math.Trunc(v))
}

// arguments reads the arguments that a Python program printed.
func (s *reading) arguments(text string) {
	for _, m := range argument().FindAllStringSubmatch(text, maxArguments) {
		if setting, ok := s.settingOf[m[1]]; ok {
			s.set(setting, strings.Trim(m[2], `'"`))
		}
	}
}

// keyed reports whether a text has a key that document reads.
func (s *reading) keyed(src []byte) bool {
	has := func(names map[string]string) bool {
		for name := range names {
			if bytes.Contains(src, []byte(`"`+name+`"`)) {
				return true
			}
		}
		return false
	}
	return has(s.countOf) || has(s.settingOf) || bytes.Contains(src, []byte(`"input_config"`)) ||
		bytes.Contains(src, []byte(`"library_build_type"`))
}

// document reads a JSON document. If no known program wrote it, its keys count only if they can hardly mean anything
// else.
func (s *reading) document(d map[string]any) {
	if d == nil {
		return
	}
	_, mode := origin.Of(d)
	for _, key := range slices.Sorted(maps.Keys(d)) { // of several names for one count the last one counts
		v := d[key]
		if setting, ok := s.settingOf[key]; ok && (mode != "" || plausible(setting, v)) {
			s.value(setting, v)
		}
		if metric, ok := s.countOf[key]; ok {
			s.count(metric, v)
		}
		if slices.Contains([]string{"config", "args", "parameters", "settings", "engine_args"}, key) {
			for name, value := range jsondoc.Object(v) {
				if setting, ok := s.settingOf[name]; ok && d[name] == nil && plausible(setting, value) {
					s.value(setting, value)
				}
			}
		}
		for _, inner := range slices.Sorted(maps.Keys(jsondoc.Object(v))) {
			if metric, ok := s.countOf[inner]; ok && d[inner] == nil {
				s.count(metric, jsondoc.Object(v)[inner])
			}
		}
	}
	if texts, ok := d["generated_texts"].([]any); ok {
		n, empty := jsondoc.Characters(texts)
		s.counts["generated_characters"] += n
		s.counts["empty_answers"] += empty
	}
	if each, ok := d["latencies"].([]any); ok && mode == "latency" {
		s.set("iterations", strconv.Itoa(len(each)))
	}
	if v, ok := d["duration"]; ok && mode == "serving" {
		s.count("benchmark_duration", v)
	}
	if v, ok := jsondoc.Follow(d, []string{"context", "library_build_type"}); ok {
		s.value("library_build_type", v)
	}
	for path, setting := range map[string]string{
		"endpoint.model_names": "model_id", "endpoint.type": "endpoint_type", "tokenizer.name": "tokenizer_id",
		"loadgen.concurrency": "max_concurrency", "loadgen.request_rate": "request_rate",
		"loadgen.request_count": "requests", "loadgen.warmup_request_count": "warmup_requests",
	} {
		if v, ok := jsondoc.Follow(d["input_config"], strings.Split(path, ".")); ok {
			s.value(setting, v)
		}
	}
}

// plausible reports whether a value in a document of an unknown program may be a value of the setting.
func plausible(setting string, v any) bool {
	text := scalar(v)
	digits, behind := number.Leading(text)
	switch kindOf(setting) {
	case ofWord:
		return digits == "" && text != ""
	case ofNumber:
		return digits != "" && behind == ""
	case ofWhole:
		return behind == "" && wholeNumber(digits)
	}
	return false
}

// countListed counts the failed requests in a list with one text for each request, which is empty if the request
// succeeded. A number that the document states has precedence.
func (s *reading) countListed(listed []any) {
	if _, counted := s.counts["failed_requests"]; counted {
		return
	}
	n := 0.0
	for _, item := range listed {
		if text, ok := item.(string); ok && text != "" {
			n++
		}
	}
	s.counts["failed_requests"] = n
}

func (s *reading) count(metric string, v any) {
	if listed, ok := v.([]any); ok && metric == "failed_requests" {
		s.countListed(listed)
		return
	}
	if n, ok := v.(json.Number); ok {
		if f, err := number.Parse(n.String()); err == nil {
			s.counts[metric] = f
		}
	}
}

// value stores a setting of a document. A list gives a value for each item.
func (s *reading) value(setting string, v any) {
	for _, item := range jsondoc.List(v, maxSettings) {
		s.set(setting, scalar(item))
	}
	s.set(setting, scalar(v))
}

// scalar returns a value that is neither a list nor an object as text.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		if v == jsondoc.NotFinite {
			return "inf"
		}
		return v
	case json.Number:
		return v.String()
	case bool:
		return fmt.Sprint(v)
	}
	return ""
}

// set stores one value of a setting. Words for an unset setting are no value.
func (s *reading) set(setting, value string) {
	value = strings.TrimSpace(lines.Clip(lines.Plain(value), maxSetting))
	if v, err := strconv.ParseFloat(value, 64); err == nil {
		value = strconv.FormatFloat(v, 'g', -1, 64)
	}
	switch strings.ToLower(value) {
	case "", "none", "null", "not set", "false", "nan":
		return
	case "+inf", "inf", "infinity":
		value = "inf"
	}
	if s.settings[setting] == nil {
		s.settings[setting] = map[string]bool{}
	}
	if len(s.settings[setting]) < maxSettings {
		s.settings[setting][strings.ReplaceAll(value, "; ", ";")] = true
	}
}
