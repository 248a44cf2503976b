package metrics

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// Definition says where one metric of one's own is printed. Exactly one of Match and JSON is set.
type Definition struct {
	Name   string
	Match  string // RE2, tried on every line; its first group is the number
	JSON   string // path into the last JSON document, as in results.0.p99
	File   string // below $OUT; empty: the standard output
	Unit   string // empty: what follows the number, or what the path says
	Better string // higher or lower; empty: as Better says. It is not the parser's business, only carried along
}

// custom reads metrics of one's own.
type custom struct {
	definitions []Definition
	regexps     []*regexp.Regexp // nil where a definition has a path
}

// NewCustom returns a parser for metrics of one's own, by regular expression and by path, in any mixture. Of several
// matches the last one counts, with a warning when they differ: a program that prints intermediate results prints
// the final one last. An expression sees one line at a time.
func NewCustom(definitions []Definition) (Parser, error) {
	c := custom{definitions: definitions, regexps: make([]*regexp.Regexp, len(definitions))}
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
		re, err := regexp.Compile(d.Match)
		if err != nil {
			return nil, fmt.Errorf("metric %q: match: %w", d.Name, err)
		}
		if re.NumSubexp() == 0 {
			return nil, fmt.Errorf("metric %q: match: no group says which part is the number: put it in parentheses",
				d.Name)
		}
		c.regexps[i] = re
	}
	return c, nil
}

// Format is json when all definitions are paths, else regex.
func (c custom) Format() string {
	if slices.ContainsFunc(c.regexps, func(re *regexp.Regexp) bool { return re != nil }) {
		return "regex"
	}
	return "json"
}

func (c custom) Parse(out Output) (Result, error) {
	to := newCollector(c.Format())
	var files []string
	for _, d := range c.definitions {
		if !slices.Contains(files, d.File) {
			files = append(files, d.File)
		}
	}
	for _, file := range files {
		if err := c.parse(to, file, out); err != nil {
			return Result{}, fmt.Errorf("%s: %w", to.Format, err)
		}
	}
	for i, d := range c.definitions {
		if _, ok := to.index[d.Name]; !ok && c.regexps[i] != nil {
			to.warnOf(NotFound, d.Name, 0, "%s: no line matches", d.Name)
		}
	}
	return to.finish(), nil
}

// parse reads one file, or the standard output. A file that is missing is a warning: its metrics are then missing, too.
func (c custom) parse(to *collector, file string, out Output) error {
	r := out.Stdout
	if file != "" {
		if out.Open == nil {
			to.warn(0, "%s: there are no files", file)
			return nil
		}
		f, err := out.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			to.warn(0, "%s: the command left no such file in $OUT", file)
			return nil
		}
		if err != nil {
			to.warn(0, "%s: %v", file, err)
			return nil
		}
		defer f.Close()
		r = f
	}
	var t tail
	paths := slices.ContainsFunc(c.definitions, func(d Definition) bool { return d.File == file && d.JSON != "" })
	if paths {
		r = io.TeeReader(r, &t)
	}
	l := newLines(r)
	for l.next() {
		c.line(to, file, l)
		if !isEngineProgress(l.bytes()) {
			to.scan(l.bytes())
		}
	}
	if err := l.err(); err != nil {
		return err
	}
	to.ending(l)
	if paths {
		firsts := map[string]Sample{}
		document := t.each(to, func(earlier any) {
			for _, d := range c.definitions {
				if d.JSON == "" || d.File != file {
					continue
				}
				if v, ok := follow(earlier, pathParts(d.JSON)); ok {
					noteFirst(firsts, d.Name, v)
				}
			}
		})
		c.paths(to, file, document)
		to.again(firsts)
	}
	return nil
}

// maxMatches is how many matches in one line are taken: an expression that matches everywhere would make a line of a
// hostile program cost as much as a file.
const maxMatches = 1000

// line tries the expressions of a file on one line.
func (c custom) line(to *collector, file string, l *lines) {
	progress := isEngineProgress(l.bytes())
	for i, re := range c.regexps {
		d := c.definitions[i]
		if re == nil || d.File != file {
			continue
		}
		if progress {
			if re.Match(l.bytes()) {
				to.warn(l.number, "%s: matches what an engine logs while it works, which is no result: not read",
					d.Name)
			}
			continue
		}
		matches := re.FindAllSubmatchIndex(l.bytes(), maxMatches+1)
		if len(matches) > maxMatches {
			matches = matches[:maxMatches]
			to.warn(l.number, "%s: more than %d matches in one line: the rest of it is left out", d.Name, maxMatches)
		}
		for _, m := range matches {
			if m[2] < 0 {
				to.warn(l.number, "%s: matched, but not the group with the number", d.Name)
				continue
			}
			if partial(l.bytes(), m[2], m[3]) {
				to.warnOf("", d.Name, l.number, "%s: the match takes %s, a part of the number that stands there",
					d.Name, clip(string(l.bytes()[m[2]:m[3]]), maxLabel))
			}
			unit := unitAt(d.Unit, l.bytes(), m[2], m[3])
			to.add(d.Name, string(l.bytes()[m[2]:m[3]]), canonicalUnit(unit), l.number)
		}
	}
}

// paths looks the definitions of a file up in its document.
func (c custom) paths(to *collector, file string, document any) {
	for _, d := range c.definitions {
		if d.JSON == "" || d.File != file || document == nil {
			continue
		}
		v, ok := follow(document, pathParts(d.JSON))
		if !ok {
			to.warnOf(NotFound, d.Name, 0, "%s: nothing at %s", d.Name, d.JSON)
			for _, l := range leaves(document, "", nil, maxLabels) {
				to.label(l.path)
			}
			continue
		}
		text, remark, err := digits(v)
		if err != nil {
			to.warn(0, "%s: %s %v", d.Name, d.JSON, err)
			continue
		}
		if remark != "" {
			to.warn(0, "%s: %s", d.Name, remark)
		}
		unit := d.Unit
		if unit == "" {
			unit = pathUnit(d.JSON)
		}
		to.add(d.Name, text, canonicalUnit(unit), 0)
	}
}

// unitAt is the unit of the number that stands at line[from:to].
func unitAt(declared string, line []byte, from, to int) string {
	rest := line[to:]
	if letter := multiple(rest); letter != "" {
		next := following(string(rest[1:min(len(rest), maxLabel)]))
		return strings.TrimSpace(letter + " " + cmp.Or(next, declared))
	}
	printed := following(string(rest[:min(len(rest), maxLabel)]))
	if printed == "" {
		printed = labelled(string(line[max(0, from-maxLabel):from]))
	}
	return printedUnit(declared, printed)
}

// printedUnit is the unit of a number: as declared, unless the output says another one of the same dimension.
func printedUnit(declared, printed string) string {
	if declared == "" {
		return printed
	}
	if _, ok := Convert(1, printed, declared); ok {
		return printed
	}
	return declared
}

// following returns the unit that stands right after a number, empty when the word there is not known to be one.
func following(rest string) string {
	fields := strings.Fields(strings.TrimLeft(rest, " \t("))
	if len(fields) == 0 {
		return ""
	}
	word := strings.TrimRight(fields[0], ".,;:)")
	if len(fields) >= 3 && fields[1] == "per" {
		return word + "/" + strings.TrimRight(fields[2], ".,;:)")
	}
	unit := canonicalUnit(word)
	if _, known := scaleOf(unit); known || strings.Contains(unit, "/") || isTime(unit) || unit == "%" || unit == "B" ||
		unit == "req" || unit == "tok" {
		return unit
	}
	return ""
}
