// Package sieve finds the expressions that a line may match, without trying them.
package sieve

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// Sieve finds the rules that a line may match, in one pass over its bytes. To try some hundred expressions on every
// line of a long log would take minutes; nearly all of them require a word, and hardly any line has one.
type Sieve struct {
	words  [1 << sieveBits][]word // by hash of their heads
	always []int                  // rules that require no word
	seen   []int                  // by rule: the last turn in which it was a candidate
	all    []need                 // by rule: all words that it requires
	found  []int                  // result of Candidates
	lower  []byte                 // the line in lower case, for needs; empty: not yet made
}

const sieveBits = 12

// word is a text that a rule requires.
type word struct {
	text []byte // in lower case if fold
	fold bool   // upper and lower case are equal
	head uint32 // the first headSize bytes, in lower case
	rule int
}

func (w *word) begins(line []byte) bool {
	if len(line) < len(w.text) {
		return false
	}
	for i, c := range w.text {
		if line[i] != c && (!w.fold || lower(line[i]) != c) {
			return false
		}
	}
	return true
}

const headSize = 4

// New returns a sieve of expressions. A rule is the index of its expression.
func New(rules []*regexp.Regexp) *Sieve {
	s := &Sieve{seen: make([]int, len(rules))}
	for i, r := range rules {
		s.all = append(s.all, needs(r.String()))
		words := required(r.String())
		if len(words) == 0 {
			s.always = append(s.always, i)
		}
		for _, w := range words {
			w.rule = i
			for _, c := range w.text[:headSize] {
				w.head = w.head<<8 | uint32(lower(c))
			}
			at := hash(w.head)
			s.words[at] = append(s.words[at], w)
		}
	}
	return s
}

// Candidates returns the rules, in no order, that may match a line. turn is a new number in each call, from 1. The
// result is valid until the next call.
func (s *Sieve) Candidates(line []byte, turn int) []int {
	s.found = append(s.found[:0], s.always...)
	s.add(line, turn)
	s.lower = s.lower[:0]
	s.found = slices.DeleteFunc(s.found, func(rule int) bool { return !s.met(&s.all[rule], line) })
	return s.found
}

// add adds the rules with a word of a line to those found in the same turn.
func (s *Sieve) add(line []byte, turn int) {
	s.scan(line, turn)
	if ascii := plain(line); len(ascii) != len(line) {
		s.scan(ascii, turn) // beside the line itself: for a rule with a case these letters stay different
	}
}

// scan adds the rules that require a word of a line.
func (s *Sieve) scan(line []byte, turn int) {
	var head uint32
	for i, c := range line {
		head = head<<8 | uint32(lower(c))
		if i < headSize-1 {
			continue
		}
		for _, w := range s.words[hash(head)] {
			if w.head == head && s.seen[w.rule] != turn && w.begins(line[i-headSize+1:]) {
				s.seen[w.rule] = turn
				s.found = append(s.found, w.rule)
			}
		}
	}
}

func hash(head uint32) uint32 { return head * 0x9e3779b1 >> (32 - sieveBits) }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// required returns words, of headSize bytes at least, of which every match of an expression holds one; none: the
// expression requires no such word.
func required(expression string) []word {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	set := literals(re)
	if shortest(set) < headSize {
		return nil
	}
	return set
}

// literals returns a set of words of which every match of re holds one: the set whose shortest word is the longest.
func literals(re *syntax.Regexp) []word {
	switch re.Op {
	case syntax.OpLiteral:
		text := []byte(string(re.Rune))
		if re.Flags&syntax.FoldCase == 0 {
			return []word{{text: text}}
		}
		return []word{{text: folded(text), fold: true}}
	case syntax.OpCapture, syntax.OpPlus:
		return literals(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return literals(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []word
		for _, sub := range re.Sub {
			if set := literals(sub); shortest(set) > shortest(best) {
				best = set
			}
		}
		return best
	case syntax.OpAlternate:
		var all []word
		for _, sub := range re.Sub {
			set := literals(sub)
			if len(set) == 0 {
				return nil
			}
			all = append(all, set...)
		}
		return all
	}
	return nil
}

// folded returns a text in lower case, for a rule without case; empty: it has letters beyond ASCII, whose cases the
// sieve does not know.
func folded(text []byte) []byte {
	text = plain(text)
	if bytes.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return nil
	}
	return bytes.ToLower(text)
}

// Letters beyond ASCII that equal k and s for a rule without case.
var kelvin, longS = []byte("\u212a"), []byte("\u017f")

// plain replaces these letters by k and s.
func plain(text []byte) []byte {
	if bytes.Contains(text, kelvin) {
		text = bytes.ReplaceAll(text, kelvin, []byte("k"))
	}
	if bytes.Contains(text, longS) {
		text = bytes.ReplaceAll(text, longS, []byte("s"))
	}
	return text
}

func shortest(set []word) int {
	if len(set) == 0 {
		return 0
	}
	n := len(set[0].text)
	for _, w := range set {
		n = min(n, len(w.text))
	}
	return n
}

// Shortest returns the length in bytes of the shortest of the words of which every match of an expression holds one; 0:
// the expression requires no word.
func Shortest(expression string) int { return shortest(required(expression)) }
