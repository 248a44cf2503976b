package classify

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/sieve"
)

// search looks for rules in a log, one line after the other.
type search struct {
	rules    []Rule // the last one is a pseudo rule: a server is ready
	sieve    *sieve.Sieve
	joinable []bool // by rule: a match may continue on the next line
	specific int    // number of rules that are no wrappers; they come first
	turn     int

	errors   found // the best match outside warnings and notices
	warnings found // the best match in warnings and notices since a server was last ready

	previous []byte // end of the line before, at most maxJoined bytes
	head     []byte // beginning of the line before, at most maxJoined bytes
	number   int    // number of the line before
	width    int    // length of the line before, with its prefix
	joined   []byte // buffer
}

// found is a match.
type found struct {
	rule     int // index of the rule; the number of rules: none yet
	line     int
	evidence string
}

const (
	minWrapped = 40  // shortest line, in bytes, that a terminal or formatter may have broken
	minWord    = 12  // shortest word, in bytes, of a rule that is tried on two joined lines: shorter words are common
	maxJoined  = 120 // bytes on either side of a break in which a match over the break is found
)

// Lines that a server prints once it is ready. A warning before them did not keep it from starting.
const ready = `The server is fired up and ready to roll|Application startup complete`

func newSearch(rules []Rule, specific int) *search {
	c := &search{specific: specific, rules: append(slices.Clip(rules), Rule{Pattern: regexp.MustCompile(ready)}),
		joinable: make([]bool, len(rules)+1)}
	patterns := make([]*regexp.Regexp, len(c.rules))
	for i, r := range c.rules {
		patterns[i] = r.Pattern
	}
	c.sieve = sieve.New(patterns)
	for i, r := range rules {
		c.joinable[i] = sieve.Shortest(r.Pattern.String()) >= minWord && singular(r.Pattern.String())
	}
	c.errors.rule, c.warnings.rule = len(rules), len(rules)
	return c
}

// line tries the rules on the next line.
func (c *search) line(number int, line []byte) {
	if slices.ContainsFunc(forgiven, func(text []byte) bool { return bytes.Contains(line, text) }) {
		c.width = 0
		return
	}
	c.turn++
	text := withoutPrefix(line)
	for _, i := range c.sieve.Candidates(line, c.turn) {
		c.try(i, number, line, line, 0)
		if len(text) < len(line) {
			c.try(i, number, text, line, 0)
		}
	}
	c.across(number, bytes.TrimLeft(text, " \t"))
	c.number, c.width = number, len(line)
	c.head = append(c.head[:0], line[:min(len(line), maxJoined)]...)
	c.previous = append(c.previous[:0], ending(text, maxJoined)...)
}

// across looks for matches that begin in the line before and end in this one: terminals and log formatters break lines
// at a space, which is lost, or within a word.
func (c *search) across(number int, line []byte) {
	if number != c.number+1 || c.width < minWrapped || len(line) == 0 {
		return
	}
	for _, gap := range []string{" ", ""} {
		c.turn++
		c.joined = append(append(append(c.joined[:0], c.previous...), gap...), line[:min(len(line), maxJoined)]...)
		for _, i := range c.sieve.Candidates(c.joined, c.turn) {
			if c.joinable[i] {
				c.try(i, c.number, c.joined, c.head, len(c.previous))
			}
		}
	}
}

// try tries a rule on a text that begins in a line. If broken is not 0, a match must include the break at that place of
// the text.
func (c *search) try(rule, number int, text, line []byte, broken int) {
	if !c.matters(rule) {
		return
	}
	at := c.rules[rule].Pattern.FindIndex(text)
	if at == nil || broken > 0 && (at[0] >= broken || at[1] <= broken) {
		return
	}
	if rule == len(c.rules)-1 {
		c.warnings = found{rule: rule}
		return
	}
	best := &c.errors
	if l := quiet(line); len(l) > 0 && !bytes.HasPrefix(text[at[0]:], l) {
		best = &c.warnings
	}
	if rule < best.rule {
		*best = found{rule, number, lines.Evidence(text, at[0])}
	}
}

// matters reports whether a match of a rule would change the answer. Once an error has matched a rule that is no
// wrapper, no warning does, nor the end of a start.
func (c *search) matters(rule int) bool {
	return rule < c.errors.rule ||
		c.errors.rule >= c.specific && (rule < min(c.warnings.rule, c.specific) || rule == len(c.rules)-1)
}

// level matches the first level in a line: of Python's loggers, exceptions and warnings, of glog, of pip. Its two
// groups hold the level of a warning or a notice. torch writes the month of glog's date without a leading zero.
var level = lazyregexp.New(`^.{0,100}?(?:\b(?:ERROR|CRITICAL|FATAL)\b|\b[A-Z]\w*(?:Error|Exception): ` +
	`|\bE\d{3,4} \d\d:|(\bWARN(?:ING)?\b|\b[A-Z]\w*Warning: |\b[WI]\d{3,4} \d\d:)` +
	`|(?:^|[\s\[|])(INFO|DEBUG)(?:[\s\]|:]|$))`)

// quiet returns the level of a line that is a warning or a notice; empty: it is an error, or has no level.
func quiet(line []byte) []byte {
	l := level().FindSubmatch(line)
	switch {
	case l == nil:
		return nil
	case l[1] != nil:
		return l[1]
	}
	return l[2]
}

// forgiven are texts of errors of which the program itself says that it ignores them.
var forgiven = [][]byte{[]byte("Ignore import error when loading "), []byte("Will ignore error and continue")}

// prefix matches the marks that loggers, Ray, torch, docker compose, kubectl and quotes put before the text of a line.
var prefix = lazyregexp.New(`^(\s*(> |\([^()]{0,60}\bpid=\d+[^()]{0,60}\) |\[(rank|pod/)[^\]]{0,80}\]:? ` +
	`|[\w.-]{1,60} +\| |\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,\d]*\]? (- )?` +
	`|(DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d (\[[^\]]{0,80}\]|[\w.]{1,60}:\d+\]) ))+`)

// withoutPrefix returns a line without the marks of the programs that passed it on.
func withoutPrefix(line []byte) []byte {
	head := bytes.TrimLeft(line[:min(len(line), 80)], " \t")
	if len(head) == 0 || !bytes.ContainsAny(head[:1], ">([0123456789DIWEC") && bytes.IndexByte(head, '|') < 0 {
		return line
	}
	return line[len(prefix().Find(line)):]
}

// ending returns the end of a text: at most n bytes, whole characters.
func ending(text []byte, n int) []byte {
	if len(text) <= n {
		return text
	}
	text = text[len(text)-n:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

// singular reports whether an expression may be tried on two joined lines. Arbitrary text between two words would match
// them in unrelated lines, and the anchors of a line have no meaning there.
func singular(expression string) bool {
	re, err := syntax.Parse(expression, syntax.Perl)
	return err == nil && plainly(re)
}

func plainly(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText,
		syntax.OpEndText:
		return false
	}
	return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !plainly(sub) })
}
