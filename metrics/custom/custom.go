// Package custom reads custom metrics, which a file defines by an expression or a path.
package custom

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/invalid"
	"github.com/benchgraph/benchgraph/metrics/jsondoc"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/number"
	"github.com/benchgraph/benchgraph/metrics/units"
)

// Definition tells where one custom metric is printed. Exactly one of Match and JSON is set.
type Definition struct {
	Name  string
	Match string // RE2, tried on every line; its first group is the number
	JSON  string // path into the last JSON document, as in results.0.p99
	File  string // below $OUT; empty: the standard output
	Unit  string // empty: the text after the number, or the end of the path
}

// parser reads custom metrics.
type parser struct {
	definitions []Definition
	expressions []*expression // nil for definitions with a path
}

// New returns a parser for custom metrics, by regular expression and by path, in any mixture. Of several matches the
// last one counts, with a warning if they differ: a program that prints intermediate results prints the final one last.
// An expression is tried on one line at a time.
func New(definitions []Definition) (metrics.Parser, error) {
	c := parser{definitions: definitions, expressions: make([]*expression, len(definitions))}
	if len(definitions) == 0 {
		return nil, errors.New("metrics: nothing to read: no metric is defined")
	}
	for i, d := range definitions {
		switch {
		case d.Name == "":
			return nil, errors.New("metric: it has no name")
		case (d.Match == "") == (d.JSON == ""):
			return nil, fmt.Errorf("metric %q: exactly one of match and json is needed", d.Name)
		case d.Match == "":
			continue
		}
		e, err := compile(d.Match)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", d.Name, err)
		}
		c.expressions[i] = e
	}
	return c, nil
}

// format returns json if all definitions are paths, else regex.
func (c parser) format() string {
	if slices.ContainsFunc(c.expressions, func(e *expression) bool { return e != nil }) {
		return "regex"
	}
	return "json"
}

func (c parser) Parse(out metrics.Output) (metrics.Result, error) {
	to := collect.New(c.format())
	var files []string
	for _, d := range c.definitions {
		if !slices.Contains(files, d.File) {
			files = append(files, d.File)
		}
	}
	for _, file := range files {
		if err := c.parse(to, file, out); err != nil {
			return metrics.Result{}, fmt.Errorf("%s: %w", to.Format, err)
		}
	}
	for i, d := range c.definitions {
		_, read := to.Sample(d.Name)
		_, refused := to.Refused(d.Name)
		if !read && !refused && c.expressions[i] != nil {
			to.WarnOf(metrics.NotFound, d.Name, 0, "%s: no line matches", d.Name)
		}
	}
	return to.Finish(), nil
}

// NoFile is the end of the warning about a file that is missing.
const NoFile = "the command left no such file in $OUT"

// parse reads one file, or the standard output. A missing file is a warning; its metrics are then missing, too.
func (c parser) parse(to *collect.Collector, file string, out metrics.Output) error {
	r := out.Stdout
	if file != "" {
		if out.Open == nil {
			to.Warn(0, "%s: there are no files", file)
			return nil
		}
		f, err := out.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			to.Warn(0, "%s: %s", file, NoFile)
			return nil
		}
		if err != nil {
			to.Warn(0, "%s: %v", file, err)
			return nil
		}
		defer f.Close()
		r = f
	}
	var t jsondoc.Tail
	paths := slices.ContainsFunc(c.definitions, func(d Definition) bool { return d.File == file && d.JSON != "" })
	if paths {
		r = io.TeeReader(r, &t)
	}
	l := lines.New(r)
	l.Whole = true
	for l.Next() {
		c.line(to, file, l)
		if !lines.EngineProgress(l.Bytes()) {
			to.Scan(l.Bytes())
		}
	}
	if err := l.Err(); err != nil {
		return err
	}
	to.Ending(l)
	if paths {
		before := collect.NewEarlier()
		document := to.Documents(&t, func(document any) {
			for _, d := range c.definitions {
				if d.JSON == "" || d.File != file {
					continue
				}
				if v, ok := jsondoc.Follow(document, jsondoc.Parts(d.JSON)); ok {
					before.Note(d.Name, v)
				}
			}
		})
		c.paths(to, file, document)
		if to.Failure == nil {
			to.Failure = invalid.Partly(document)
		}
		to.Again(before)
	}
	return nil
}

// maxMatches bounds the matches in one line: if an expression matches everywhere, a line of a hostile program would
// cost as much as a file.
const maxMatches = 1000

// line tries the expressions of a file on one line.
func (c parser) line(to *collect.Collector, file string, l *lines.Reader) {
	progress := lines.EngineProgress(l.Bytes())
	for i, e := range c.expressions {
		d := c.definitions[i]
		if e == nil || d.File != file {
			continue
		}
		if progress {
			if e.re.Match(l.Bytes()) {
				to.Warn(l.Number, "%s: matches a line of an engine's progress, which is no result: not read",
					d.Name)
			}
			continue
		}
		matches := e.re.FindAllSubmatchIndex(l.Bytes(), maxMatches+1)
		if len(matches) > maxMatches {
			matches = matches[:maxMatches]
			to.Refuse(d.Name, l.Number,
				fmt.Sprintf("more than %d matches in one line: the rest of it is left out", maxMatches))
		}
		var starts []int
		for _, m := range matches {
			starts = append(starts, m[2])
			switch {
			case m[1] <= l.From || m[1] > l.To: // it belongs to another piece of the line
			case m[2] < 0:
				to.Warn(l.Number, "%s: matched, but not the group with the number", d.Name)
			default:
				e.add(to, d, l, m[2], m[3])
			}
		}
		e.hidden(to, d, l, matches)
		e.unlike(l.Bytes(), starts, func(end int, text string, other bool) {
			switch {
			case end <= l.From || end > l.To:
			case other:
				to.WarnOf(metrics.Unread, d.Name, l.Number,
					"%s: %q follows the label, in another unit than in match: not read", d.Name, text)
			default:
				to.Refuse(d.Name, l.Number, fmt.Sprintf("%q follows the label, and match does not take it", text))
			}
		})
	}
}

// hidden refuses values that terminal sequences of a line hide, and that differ from all visible matches.
func (e *expression) hidden(to *collect.Collector, d Definition, l *lines.Reader, matches [][]int) {
	covered := printable.Covered(l.Raw())
	if covered == nil { // as for nearly all lines
		return
	}
	for _, m := range e.re.FindAllSubmatch([]byte(lines.Plain(string(covered))), maxMatches) {
		_, err := number.Divided(string(m[1]))
		if err == nil && !slices.ContainsFunc(matches, func(of []int) bool {
			return of[2] >= 0 && bytes.Equal(l.Bytes()[of[2]:of[3]], m[1])
		}) {
			to.Refuse(d.Name, l.Number, fmt.Sprintf("a terminal sequence hides %q",
				lines.Clip(string(m[0]), collect.MaxLabel)))
		}
	}
}

// add adds the number that an expression found at a place of a line.
func (e *expression) add(to *collect.Collector, d Definition, l *lines.Reader, from, end int) {
	line := l.Bytes()
	digits := string(line[from:end])
	if all := number.Cut(line, from, end, e.ends); all != "" {
		to.Refuse(d.Name, l.Number, fmt.Sprintf("the match takes %s, which is only a part of %q",
			lines.Clip(digits, collect.MaxLabel), lines.Clip(all, collect.MaxLabel)))
		return
	}
	if number.Groups(line[end:]) {
		to.WarnOf(metrics.Unread, d.Name, l.Number, "%s: three digits follow %s and may belong to the number",
			d.Name, lines.Clip(digits, collect.MaxLabel))
	}
	unit, printed := units.Canonical(units.At(d.Unit, line, from, end)), units.Canonical(units.At("", line, from, end))
	if unit != printed && units.Quantity(unit) != "" && units.Quantity(printed) != "" {
		to.WarnOf("", d.Name, l.Number, "%s: the output prints the unit %s, and unit is %s", d.Name, printed, d.Unit)
	}
	if v, err := number.Divided(digits); e.commas && err == nil {
		to.Put(metrics.Sample{Metric: d.Name, Value: v, Unit: unit, Printed: strings.TrimSpace(digits), Line: l.Number})
		return
	}
	to.Add(d.Name, digits, unit, l.Number)
}

// paths looks up the definitions of a file in its document.
func (c parser) paths(to *collect.Collector, file string, document any) {
	for _, d := range c.definitions {
		if d.JSON == "" || d.File != file || document == nil {
			continue
		}
		v, ok := jsondoc.Follow(document, jsondoc.Parts(d.JSON))
		if !ok {
			to.WarnOf(metrics.NotFound, d.Name, 0, "%s: nothing at %s", d.Name, d.JSON)
			for _, l := range jsondoc.Leaves(document, collect.MaxLabels) {
				to.Label(l.Path)
			}
			continue
		}
		text, remark, err := jsondoc.Digits(v)
		if err != nil {
			to.Refuse(d.Name, 0, fmt.Sprintf("%s %v", d.JSON, err))
			continue
		}
		if remark != "" {
			to.Warn(0, "%s: %s", d.Name, remark)
		}
		to.Add(d.Name, text, units.Canonical(cmp.Or(d.Unit, units.OfPath(d.JSON))), 0)
	}
}
