// Package classify finds the reason why a command failed: it tries the rules of known failures on the lines of its log.
package classify

import (
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/metrics/lines"
)

// Rule is a rule that can be tried on lines.
type Rule struct {
	failure.Rule
	Pattern *regexp.Regexp // Match, compiled
}

// Match is the rule that explains a failure, and the line that it matched.
type Match struct {
	Rule     string        `json:"rule"`
	Class    failure.Class `json:"class"`
	Stage    string        `json:"stage"`    // the rule's first stage, since a log does not tell; empty: any
	Evidence string        `json:"evidence"` // the line, trimmed and clean; at most 400 bytes, around the match
	Line     int           `json:"line"`     // 1-based; 0: a document, which has no lines
	Remedy   string        `json:"remedy,omitempty"`

	Wrapper bool `json:"-"` // the rule only tells that something failed
}

// Log finds the rule that explains a failure: the first one, in the order of rules, that matches any line of the log.
// Rules that match only warnings and notices come after those, and wrappers come last. The evidence is the first line
// that the rule matches. With an empty stage all rules are tried. Log reads the log once; the error is the reader's.
func Log(rules []Rule, stage string, log io.Reader) (Match, bool, error) {
	return find(rules, stage, log, 0)
}

// After is Log for the lines after a given one, at any stage.
func After(rules []Rule, line int, log io.Reader) (Match, bool, error) {
	return find(rules, "", log, line)
}

// find is Log for the lines after a given one.
func find(rules []Rule, stage string, log io.Reader, after int) (Match, bool, error) {
	var order []Rule
	specific := 0
	for _, wrapper := range []bool{false, true} {
		for _, r := range rules {
			if r.Wrapper == wrapper && (stage == "" || len(r.Stages) == 0 || slices.Contains(r.Stages, stage)) {
				order = append(order, r)
			}
		}
		if !wrapper {
			specific = len(order)
		}
	}
	c := newSearch(order, specific)
	l := lines.New(log)
	for c.errors.rule > 0 && l.Next() {
		if l.Number > after {
			c.line(l.Number, l.Bytes())
		}
	}
	if err := l.Err(); err != nil {
		return Match{}, false, fmt.Errorf("log: line %d: %w", l.Number, err)
	}
	best := c.errors
	if best.rule >= specific && c.warnings.rule < specific || best.rule == len(order) {
		best = c.warnings
	}
	if best.rule == len(order) {
		return Match{}, false, nil
	}
	r := order[best.rule]
	m := Match{Rule: r.Name, Class: r.Class, Evidence: best.evidence, Line: best.line, Remedy: r.Remedy,
		Wrapper: r.Wrapper}
	if len(r.Stages) > 0 {
		m.Stage = r.Stages[0]
	}
	return m, true, nil
}
