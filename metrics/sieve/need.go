package sieve

import (
	"bytes"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// need is a condition that every line fulfils in which an expression matches: it holds a word, or the needs of all
// parts of the expression are met, or that of any. The zero value is met by every line. An expression on a line that
// holds one of its words and lacks the others costs a hundred times as much as the search for these.
type need struct {
	word word
	all  []need
	any  []need
}

func (n *need) open() bool { return len(n.word.text)+len(n.all)+len(n.any) == 0 }

// needs returns the need of an expression.
func needs(expression string) need {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return need{}
	}
	return needOf(re)
}

func needOf(re *syntax.Regexp) (n need) {
	switch re.Op {
	case syntax.OpLiteral:
		if !slices.Contains(re.Rune, utf8.RuneError) { // which also matches bytes that are not UTF-8
			n.word = literals(re)[0]
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needOf(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needOf(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if part := needOf(sub); !part.open() {
				n.all = append(n.all, part)
			}
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			part := needOf(sub)
			if part.open() {
				return need{}
			}
			n.any = append(n.any, part)
		}
	}
	return n
}

// met reports whether a line fulfils a need.
func (s *Sieve) met(n *need, line []byte) bool {
	if len(n.word.text) > 0 && !s.holds(&n.word, line) {
		return false
	}
	for i := range n.all {
		if !s.met(&n.all[i], line) {
			return false
		}
	}
	for i := range n.any {
		if s.met(&n.any[i], line) {
			return true
		}
	}
	return len(n.any) == 0
}

// holds reports whether a line holds a word.
func (s *Sieve) holds(w *word, line []byte) bool {
	if !w.fold {
		return bytes.Contains(line, w.text)
	}
	if len(s.lower) == 0 {
		for _, c := range plain(line) {
			s.lower = append(s.lower, lower(c))
		}
	}
	return bytes.Contains(s.lower, w.text)
}
