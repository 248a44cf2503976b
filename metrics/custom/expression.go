package custom

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"

	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/lines"
)

// expression finds the values of one metric in lines.
type expression struct {
	re     *regexp.Regexp
	ends   string // characters of the expression beside its first group: they end a number
	commas bool   // the first group has a comma, which then divides digits

	label []byte         // text that a line must have for like to match
	like  *regexp.Regexp // the label and any text that begins as a number; nil: the label is too short
	same  string         // text of the expression behind the number
}

// compile reads an expression, whose first group is the number.
func compile(match string) (*expression, error) {
	re, err := regexp.Compile(match)
	if err != nil {
		return nil, fmt.Errorf("match: %w", err)
	}
	if re.NumSubexp() == 0 {
		return nil, errors.New("match: no group says which part is the number: put it in parentheses")
	}
	e := &expression{re: re}
	parsed, err := syntax.Parse(match, syntax.Perl)
	if err != nil || parsed.Op != syntax.OpConcat {
		return e, nil
	}
	at := slices.IndexFunc(parsed.Sub, func(sub *syntax.Regexp) bool {
		return sub.Op == syntax.OpCapture && sub.Cap == 1
	})
	if at < 0 {
		return e, nil
	}
	e.commas = commaIn(parsed.Sub[at], false)
	if commaIn(parsed.Sub[at], true) {
		e.ends = ","
	}
	label, blanks := "", ""
	front := parsed.Sub[:at]
	if n := len(front); n > 0 && areBlanks(front[n-1]) {
		front, blanks = front[:n-1], `\s*`
	}
	if n := len(front); n > 0 && blanks == "" {
		e.ends += lastOf(front[n-1])
	}
	if n := len(front); n > 0 && front[n-1].Op == syntax.OpLiteral {
		label = string(front[n-1].Rune)
		if front[n-1].Flags&syntax.FoldCase == 0 {
			e.label = []byte(label)
		}
	}
	if at+1 < len(parsed.Sub) && parsed.Sub[at+1].Op == syntax.OpLiteral {
		e.same = string(parsed.Sub[at+1].Rune)
		e.ends += string(parsed.Sub[at+1].Rune[:1])
	}
	const enough = 3 // letters of a label that no other number has by accident
	if len(strings.Map(onlyLetters, label)) >= enough {
		begin := (&syntax.Regexp{Op: syntax.OpConcat, Sub: front}).String() // with what must stand before the label
		e.like = regexp.MustCompile(begin + blanks +
			`((?i:[-+]?(?:\.?[0-9][^\s;|"]*|nan|inf(?:inity)?)))`)
	}
	return e, nil
}

func onlyLetters(r rune) rune {
	if unicode.IsLetter(r) {
		return r
	}
	return -1
}

// areBlanks reports whether an expression matches any number of blanks.
func areBlanks(re *syntax.Regexp) bool {
	if re.Op != syntax.OpStar && re.Op != syntax.OpPlus {
		return false
	}
	switch of := re.Sub[0]; of.Op {
	case syntax.OpLiteral:
		return string(of.Rune) == " "
	case syntax.OpCharClass:
		return len(of.Rune) > 0 && of.Rune[len(of.Rune)-1] <= ' '
	}
	return false
}

// lastOf returns the character at the end of every match of an expression; empty: there is no such character.
func lastOf(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune[len(re.Rune)-1:])
	case syntax.OpConcat, syntax.OpCapture, syntax.OpRepeat, syntax.OpStar, syntax.OpPlus:
		return lastOf(re.Sub[len(re.Sub)-1])
	}
	return ""
}

// commaIn reports whether a group has the comma among the characters that it allows or, with out, that it excludes.
func commaIn(re *syntax.Regexp, out bool) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return !out && slices.Contains(re.Rune, ',')
	case syntax.OpCharClass:
		has := func(r rune) bool {
			for i := 0; i+1 < len(re.Rune); i += 2 {
				if re.Rune[i] <= r && r <= re.Rune[i+1] {
					return true
				}
			}
			return false
		}
		return has(',') != out && has('q') == out && has(';') == out
	}
	return slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return commaIn(sub, out) })
}

// unlike finds numbers behind the label that the expression does not match. starts are the places of the numbers that
// it matches. other tells found that the text behind the number is another one than in the expression, such as another
// unit.
func (e *expression) unlike(line []byte, starts []int, found func(end int, text string, other bool)) {
	if e.like == nil || !bytes.Contains(line, e.label) {
		return
	}
	for _, m := range e.like.FindAllSubmatchIndex(line, maxMatches) {
		if slices.Contains(starts, m[2]) {
			continue
		}
		text := strings.TrimRight(string(line[m[2]:m[3]]), ".,:)")
		other := e.same != "" && !bytes.HasPrefix(line[m[3]:], []byte(e.same)) && !strings.HasSuffix(text, e.same)
		if words := strings.Fields(string(line[m[3]:min(len(line), m[3]+collect.MaxLabel)])); other && len(words) > 0 {
			text += " " + words[0]
		}
		found(m[3], lines.Clip(text, collect.MaxLabel), other)
	}
}
