// Package redis reads the output of the benchmarks of Redis.
package redis

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/names"
	"github.com/benchgraph/benchgraph/metrics/number"
)

// Parser reads the output of redis-benchmark (its report, the lines of -q and the table of --csv) and the table of
// memtier_benchmark.
type Parser struct{}

// Parse implements metrics.Parser.
func (Parser) Parse(out metrics.Output) (metrics.Result, error) {
	r := reading{Collector: collect.New("redis-benchmark"), names: map[string]string{}, taken: map[string]bool{},
		parts: map[string]string{}}
	l := lines.New(out.Stdout)
	for l.Next() {
		r.line(l.Text(), l.Number)
		r.Scan(l.Bytes())
	}
	if err := l.Err(); err != nil {
		return metrics.Result{}, fmt.Errorf("redis: %w", err)
	}
	r.Ending(l)
	if r.memtier {
		r.Format = "memtier"
	} else {
		r.Means(func(s metrics.Sample) string { return r.parts[s.Metric] })
	}
	return r.Finish(), nil
}

// reading is the state of the parser between two lines.
type reading struct {
	*collect.Collector
	test    string            // test of the current report
	names   map[string]string // full name of a test → prefix of its metrics
	taken   map[string]bool   // prefixes in use
	parts   map[string]string // metric → its name without the test
	columns []string          // columns of the current or next table
	table   table
	memtier bool
	partial bool // the table is that of the best or the worst of several runs
}

type table int

const (
	none table = iota
	latencyNames
	latencyValues
	csvRows
	memtierRows
)

var (
	rate    = lazyregexp.New(`^(?:throughput summary: )?(\S+) requests per second$`)
	quiet   = lazyregexp.New(`^(.+): (\S+) requests per second(?:, p50=(\S+) msec)?$`)
	csvLine = lazyregexp.New(`^"[^"]+"(,"[^"]*")+$`)
)

func (r *reading) line(text string, n int) {
	text = strings.TrimSpace(text)
	if text == "" {
		if r.table != csvRows {
			r.table = none
		}
		return
	}
	switch {
	case r.table == latencyNames:
		r.columns, r.table = strings.Fields(text), latencyValues
	case r.table == latencyValues:
		r.latencies(text, n)
	case strings.HasPrefix(text, "Type ") && strings.Contains(text, "Ops/sec"):
		r.columns, r.table, r.memtier = memtierColumns(text), memtierRows, true
	case r.table == memtierRows:
		r.memtierRow(text, n)
	case strings.HasSuffix(text, " RESULTS"):
		r.partial = strings.HasPrefix(text, "BEST ") || strings.HasPrefix(text, "WORST ")
	case strings.HasPrefix(text, "AGGREGATED AVERAGE RESULTS"), text == "ALL STATS":
		r.partial = false
	case text[0] == '"' && csvLine().MatchString(text):
		r.csvRow(text, n)
	case strings.HasPrefix(text, "latency summary"):
		r.table = latencyNames
	default:
		r.report(text, n)
	}
}

// report reads the lines outside of the tables.
func (r *reading) report(text string, n int) {
	if test, ok := strings.CutPrefix(text, "====== "); ok && strings.HasSuffix(test, " ======") {
		r.test = strings.TrimSuffix(test, " ======")
	} else if !strings.Contains(text, " requests per second") {
		if strings.HasPrefix(text, "Error from server: ") || strings.HasPrefix(text, "ERROR: ") {
			r.Warn(n, "%s", lines.Clip(text, 200))
		}
	} else if m := rate().FindStringSubmatch(text); m != nil && r.test != "" {
		r.value(r.test, "requests_per_second", m[1], "req/s", n)
	} else if m := quiet().FindStringSubmatch(text); m != nil {
		r.value(m[1], "requests_per_second", m[2], "req/s", n)
		if m[3] != "" {
			r.value(m[1], "latency_p50", m[3], "ms", n)
		}
	}
}

// value adds one number of a test.
func (r *reading) value(test, part, digits, unit string, n int) {
	test = lines.Clip(test, 200)
	name, ok := r.names[test]
	if !ok {
		short, _, _ := strings.Cut(test, " (")
		name = names.Slug(short)
		if r.taken[name] {
			name = names.Slug(test)
		}
		if len(r.names) >= collect.MaxSamples {
			return
		}
		r.names[test], r.taken[name] = name, true
	}
	metric := name + "_" + part
	r.parts[metric] = part
	r.Add(metric, digits, unit, n)
}

// latencies reads the one row of a latency summary.
func (r *reading) latencies(text string, n int) {
	r.table = none
	values := strings.Fields(text)
	if len(values) != len(r.columns) || r.test == "" {
		r.Warn(n, "latency summary: %d numbers under %d names", len(values), len(r.columns))
		return
	}
	for i, column := range r.columns {
		r.value(r.test, "latency_"+names.Slug(column), values[i], "ms", n)
	}
}

// csvRow reads a row of --csv: names first, then one row for each test. Before Redis 6.2 there are no names, and only
// the rate.
func (r *reading) csvRow(text string, n int) {
	row, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		r.Warn(n, "csv: %v", err)
		return
	}
	if row[0] == "test" {
		r.columns, r.table = row, csvRows
		return
	}
	columns := r.columns
	if r.table != csvRows {
		if _, err := number.Parse(row[1]); err != nil || len(row) != 2 {
			return // a table of another program
		}
		columns = []string{"test", "rps"}
	}
	if len(row) != len(columns) {
		r.Warn(n, "csv: %d fields under %d names", len(row), len(columns))
		return
	}
	for i, column := range columns[1:] {
		if column == "rps" {
			r.value(row[0], "requests_per_second", row[i+1], "req/s", n)
		} else if stat, ok := strings.CutSuffix(column, "_latency_ms"); ok {
			r.value(row[0], "latency_"+stat, row[i+1], "ms", n)
		}
	}
}

// memtierColumns returns the columns after Type. Only latencies have names of two words.
func memtierColumns(text string) []string {
	var columns []string
	for _, word := range strings.Fields(text)[1:] {
		if last := len(columns) - 1; word == "Latency" && last >= 0 &&
			(columns[last] == "Avg." || strings.HasPrefix(columns[last], "p")) {
			columns[last] += " Latency"
			continue
		}
		columns = append(columns, word)
	}
	return columns
}

// memtierRow reads one row: a type, then a number or --- for every column.
func (r *reading) memtierRow(text string, n int) {
	if strings.Trim(text, "-") == "" {
		return
	}
	fields := strings.Fields(text)
	kind := len(fields) - len(r.columns)
	if kind < 1 {
		r.Warn(n, "table: %d fields under %d columns", len(fields), len(r.columns)+1)
		return
	}
	name := names.Slug(strings.Join(fields[:kind], " "))
	for i, column := range r.columns {
		part, unit := memtierMetric(column)
		if digits := fields[kind+i]; digits != "---" && !r.partial {
			r.Add(name+"_"+part, digits, unit, n)
		}
	}
}

// memtierMetric translates a column: Ops/sec, Hits/sec, KB/sec, Latency, Avg. Latency, p99.900 Latency.
func memtierMetric(column string) (part, unit string) {
	if stat, ok := strings.CutSuffix(column, "Latency"); ok {
		stat = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(stat), "."))
		if strings.Contains(stat, ".") {
			stat = strings.TrimRight(strings.TrimRight(stat, "0"), ".")
		}
		return "latency_" + cmp.Or(stat, "avg"), "ms"
	}
	if amount, ok := strings.CutSuffix(column, "/sec"); ok {
		if amount != "KB" {
			amount = strings.ToLower(amount)
		}
		return strings.ToLower(amount) + "_per_second", amount + "/s"
	}
	return names.Slug(column), ""
}

// Recognises reports whether no other program than redis-benchmark and memtier_benchmark prints a line.
func Recognises(line []byte) bool {
	text := bytes.TrimSpace(line)
	return bytes.Contains(text, []byte(" requests per second")) &&
		(rate().Match(text) || quiet().Match(text)) || bytes.HasPrefix(text, []byte(`"test","rps"`)) ||
		bytes.HasPrefix(text, []byte("Type ")) && bytes.Contains(text, []byte("Ops/sec"))
}
