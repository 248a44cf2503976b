// Package gobench reads the output of go test -bench.
package gobench

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/number"
	"github.com/benchgraph/benchgraph/metrics/units"
)

// Parser reads one run of benchmarks. It gives a sample for each unit of each benchmark, and means over all benchmarks.
type Parser struct{}

// Parse implements metrics.Parser.
func (Parser) Parse(out metrics.Output) (metrics.Result, error) {
	c := collect.New("gobench")
	feed := &source{lines: lines.New(out.Stdout), collector: c}
	t := table{index: map[key]int{}, packages: map[string]map[string]bool{}}
	for r := benchfmt.NewReader(feed, "output"); r.Scan(); {
		switch record := r.Result().(type) {
		case *benchfmt.SyntaxError:
			c.Warn(feed.lines.Number, "benchmark line: %s", record.Msg)
			if strings.HasPrefix(record.Msg, "parsing measurement") {
				t.badLine(strings.Fields(string(feed.line)), feed.lines.Number)
			}
		case *benchfmt.Result:
			t.add(c, record, string(feed.line), feed.lines.Number)
		}
	}
	if err := feed.lines.Err(); err != nil {
		return metrics.Result{}, fmt.Errorf("gobench: %w", err)
	}
	t.samples(c)
	c.Ending(feed.lines)
	c.Means(func(s metrics.Sample) string { return t.units[s.Metric] })
	return c.Finish(), nil
}

// source gives benchfmt one cleaned line at a time, and only lines of the format, so that other text causes no errors
// and no length counts. No Read spans two lines, so the current line is the source of the current record.
type source struct {
	lines     *lines.Reader
	collector *collect.Collector
	line      []byte
	pending   []byte
}

func (b *source) Read(p []byte) (int, error) {
	for len(b.pending) == 0 {
		if !b.lines.Next() {
			return 0, io.EOF // the caller reports errors of the lines
		}
		b.line = b.lines.Bytes()
		if isLine(b.line) || bytes.HasPrefix(b.line, []byte("pkg: ")) {
			b.pending = append(append(b.pending[:0], b.line...), '\n')
		} else {
			if bytes.HasPrefix(b.line, []byte("--- FAIL: ")) || bytes.HasPrefix(b.line, []byte("panic: ")) ||
				bytes.Equal(b.line, []byte("FAIL")) {
				b.collector.Warn(b.lines.Number, "the tests failed: %s", lines.Clip(string(b.line), collect.MaxLabel))
			}
			b.collector.Scan(b.line)
		}
	}
	n := copy(p, b.pending)
	b.pending = b.pending[n:]
	return n, nil
}

// isLine follows the rule of package testing for the names of benchmarks: no lower-case letter after the prefix.
func isLine(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("Benchmark"))
	return ok && len(rest) > 0 && rest[0] != ' ' && (rest[0] < 'a' || rest[0] > 'z')
}

// table sums up the lines of every benchmark.
type table struct {
	rows     []row
	index    map[key]int
	packages map[string]map[string]bool // by name of a benchmark: the packages that have it
	suffix   string                     // -N at the end of every name so far; empty: none, or different ones
	lines    int
	unread   []bad
	units    map[string]string // metric → its unit as printed
}

type key struct{ pkg, name, unit string }

// bad is a value that is no number. Without a unit, it stands for a whole line, whose package is not known either.
type bad struct {
	key
	line int
	text string
}

type row struct {
	key
	sum    float64
	n      int
	digits string
	line   int
}

func (t *table) add(c *collect.Collector, r *benchfmt.Result, line string, on int) {
	name, pkg := string(r.Name), r.GetConfig("pkg")
	if suffix := procs(name); t.lines == 0 {
		t.suffix = suffix
	} else if suffix != t.suffix {
		t.suffix = ""
	}
	t.lines++
	fields := strings.Fields(line)
	for i, v := range r.Values {
		value, unit, digits := v.Value, v.Unit, ""
		if v.OrigUnit != "" {
			value, unit = v.OrigValue, v.OrigUnit
		}
		if at := 2 + 2*i; at < len(fields) {
			digits = fields[at]
		}
		key := key{pkg, name, unit}
		if _, err := number.Parse(digits); err != nil {
			t.bad(bad{key, on, fmt.Sprintf("%q %s", lines.Clip(digits, collect.MaxLabel), err)})
			continue
		}
		if of := units.Quantity(unit); of != "" && value < 0 {
			t.bad(bad{key, on, fmt.Sprintf("%s %s: a %s is not negative", digits, unit, of)})
			continue
		}
		at, ok := t.index[key]
		if !ok {
			if len(t.rows) >= collect.MaxSamples {
				c.Warn(on, "more than %d metrics: %s %s is left out", collect.MaxSamples,
					lines.Clip(name, collect.MaxLabel), unit)
				continue
			}
			at = len(t.rows)
			t.index[key] = at
			t.rows = append(t.rows, row{key: key})
			if t.packages[name] == nil {
				t.packages[name] = map[string]bool{}
			}
			t.packages[name][pkg] = true
		}
		row := &t.rows[at]
		row.sum, row.n, row.digits, row.line = row.sum+value, row.n+1, digits, on
	}
}

// bad keeps a value that cannot be read.
func (t *table) bad(b bad) {
	if len(t.unread) < collect.MaxSamples {
		t.unread = append(t.unread, b)
	}
}

// badLine keeps the first value of a result line that is no number.
func (t *table) badLine(fields []string, on int) {
	for i := 2; i < len(fields); i += 2 {
		if _, err := number.Parse(fields[i]); err != nil {
			name := strings.TrimPrefix(fields[0], "Benchmark")
			t.bad(bad{key{name: name}, on, fmt.Sprintf("%q %s", lines.Clip(fields[i], collect.MaxLabel),
				err)})
			return
		}
	}
}

// metric returns the name of a row's metric.
func (t *table) metric(key key) string {
	name := strings.TrimSuffix(key.name, t.suffix)
	if len(t.packages[key.name]) > 1 {
		name = key.pkg + "." + name
	}
	return name + " " + key.unit
}

func (t *table) samples(c *collect.Collector) {
	t.units = map[string]string{}
	lines := map[string]bad{}
	for _, b := range t.unread {
		if b.unit != "" {
			c.Refuse(t.metric(b.key), b.line, b.text)
		} else {
			lines[b.name] = b
		}
	}
	for _, row := range t.rows {
		if b, ok := lines[row.name]; ok {
			c.Refuse(t.metric(row.key), b.line, b.text)
		}
		s := metrics.Sample{Metric: t.metric(row.key), Value: row.sum / float64(row.n),
			Unit: units.Canonical(row.unit), Printed: row.digits, Line: row.line}
		if row.n > 1 {
			s.Printed, s.Over = "", []string{fmt.Sprintf("%s ×%d", s.Metric, row.n)}
		}
		if math.IsInf(s.Value, 0) {
			c.Warn(row.line, "%s: the mean %s", s.Metric, number.ErrInfinite)
			continue
		}
		t.units[s.Metric] = row.unit
		c.Put(s)
	}
}

// procs returns the -N with which package testing marks GOMAXPROCS.
func procs(name string) string {
	digits := strings.TrimRight(name, "0123456789")
	if len(digits) == len(name) || !strings.HasSuffix(digits, "-") {
		return ""
	}
	return name[len(digits)-1:]
}

// Recognises reports whether a line is the result of a benchmark.
func Recognises(line []byte) bool { return isLine(line) && isResult(line) }

func isResult(line []byte) bool {
	fields := strings.Fields(string(line[:min(len(line), 4096)]))
	if len(fields) < 4 || strings.Trim(fields[1], "0123456789") != "" {
		return false
	}
	_, err := number.Parse(fields[2])
	return err == nil
}
