// Package python finds the options that a Python program knows, from its source and without running it: from the calls
// of argparse in its file, and in all functions that get its parser.
//
// It reads only words, strings and brackets, in logical lines with their indentation. It skips other syntax, and never
// fails: a Parser says why the program may know more options than were found.
package python

import "strings"

type kind uint8

const (
	pyName kind = iota
	pyString
	pyNumber
	pyOp
)

// token is one word of Python.
type token struct {
	kind    kind
	text    string // for a string, its value
	dynamic bool   // an f-string with a replacement field
}

// pyLine is one logical line: brackets join physical lines.
type pyLine struct {
	indent int
	tokens []token
}

const (
	largestSource  = 8 << 20
	longestLiteral = 8 << 10 // bytes of adjacent literals
)

// pyLines divides a source into logical lines.
func pyLines(src string) []pyLine {
	if len(src) > largestSource {
		src = src[:largestSource]
	}
	l := &pyLexer{in: src}
	for l.at < len(l.in) {
		l.step()
	}
	l.end()
	return l.lines
}

type pyLexer struct {
	in    string
	at    int
	depth int
	begun bool // the indentation of the line was read
	cur   pyLine
	lines []pyLine
}

func (l *pyLexer) end() {
	if len(l.cur.tokens) > 0 {
		l.lines = append(l.lines, l.cur)
	}
	l.cur, l.begun = pyLine{}, false
}

func (l *pyLexer) step() {
	if !l.begun && l.depth == 0 {
		indent := 0
		for l.at < len(l.in) && (l.in[l.at] == ' ' || l.in[l.at] == '\t') {
			if indent++; l.in[l.at] == '\t' {
				indent += 7
			}
			l.at++
		}
		l.begun, l.cur.indent = true, indent
		if l.at >= len(l.in) {
			return
		}
	}
	switch c := l.in[l.at]; {
	case c == '\n':
		l.at++
		if l.depth == 0 {
			l.end()
		}
	case c == ' ' || c == '\t' || c == '\r' || c == '\f':
		l.at++
	case c == '\\':
		l.at++
		if l.at < len(l.in) && l.in[l.at] == '\r' {
			l.at++
		}
		if l.at < len(l.in) && l.in[l.at] == '\n' {
			l.at++
		}
	case c == '#':
		for l.at < len(l.in) && l.in[l.at] != '\n' {
			l.at++
		}
	case c == '"' || c == '\'':
		l.text("")
	case isPyName(c, false) || c >= 0x80:
		l.name()
	case c >= '0' && c <= '9' || c == '.' && l.at+1 < len(l.in) && l.in[l.at+1] >= '0' && l.in[l.at+1] <= '9':
		l.number()
	case c == ';' && l.depth == 0:
		l.at++
		indent := l.cur.indent
		l.end()
		l.begun, l.cur.indent = true, indent
	default:
		l.op(c)
	}
}

func (l *pyLexer) op(c byte) {
	switch c {
	case '(', '[', '{':
		l.depth++
	case ')', ']', '}':
		l.depth = max(l.depth-1, 0)
	}
	text := string(c)
	if c == '*' && strings.HasPrefix(l.in[l.at:], "**") || strings.HasPrefix(l.in[l.at:], "==") ||
		strings.HasPrefix(l.in[l.at:], "->") {
		text = l.in[l.at : l.at+2]
	}
	l.at += len(text)
	l.cur.tokens = append(l.cur.tokens, token{kind: pyOp, text: text})
}

func (l *pyLexer) name() {
	begin := l.at
	for l.at < len(l.in) && (isPyName(l.in[l.at], true) || l.in[l.at] >= 0x80) {
		l.at++
	}
	text := l.in[begin:l.at]
	if l.at < len(l.in) && (l.in[l.at] == '"' || l.in[l.at] == '\'') && len(text) <= 2 &&
		strings.Trim(strings.ToLower(text), "rbfu") == "" {
		l.text(strings.ToLower(text))
		return
	}
	l.cur.tokens = append(l.cur.tokens, token{kind: pyName, text: text})
}

func (l *pyLexer) number() {
	begin := l.at
	for l.at < len(l.in) && (isPyName(l.in[l.at], true) || l.in[l.at] == '.') {
		l.at++
	}
	l.cur.tokens = append(l.cur.tokens, token{kind: pyNumber, text: l.in[begin:l.at]})
}

// text reads a literal, and joins it to the one before.
func (l *pyLexer) text(prefix string) {
	quote := l.in[l.at : l.at+1]
	if strings.HasPrefix(l.in[l.at:], quote+quote+quote) {
		quote += quote + quote
	}
	l.at += len(quote)
	raw, dynamic := strings.Contains(prefix, "r"), false
	var b strings.Builder
	for l.at < len(l.in) && !strings.HasPrefix(l.in[l.at:], quote) {
		c := l.in[l.at]
		switch {
		case c == '\\' && !raw && l.at+1 < len(l.in):
			l.at++
			switch next := l.in[l.at]; next {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case '\n':
			default:
				b.WriteByte(next)
			}
			l.at++
			continue
		case c == '\n' && len(quote) == 1: // the literal is never closed
			l.add(b.String(), dynamic)
			return
		case c == '{' && strings.Contains(prefix, "f"):
			dynamic = true
		}
		b.WriteByte(c)
		l.at++
	}
	l.at = min(l.at+len(quote), len(l.in))
	l.add(b.String(), dynamic)
}

func (l *pyLexer) add(text string, dynamic bool) {
	if n := len(l.cur.tokens); n > 0 && l.cur.tokens[n-1].kind == pyString {
		if len(l.cur.tokens[n-1].text) < longestLiteral { // only the beginning of a long text matters
			l.cur.tokens[n-1].text += text
		}
		l.cur.tokens[n-1].dynamic = l.cur.tokens[n-1].dynamic || dynamic
		return
	}
	l.cur.tokens = append(l.cur.tokens, token{kind: pyString, text: text, dynamic: dynamic})
}

func (t token) is(op string) bool { return t.kind == pyOp && t.text == op }

// isPyName reports whether a byte of ASCII may stand in a name: digits too, unless the byte is the first one.
func isPyName(c byte, digits bool) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || digits && '0' <= c && c <= '9'
}

// split divides arguments at commas outside of brackets.
func split(args []token) [][]token {
	var parts [][]token
	depth, begin := 0, 0
	for i, t := range args {
		switch {
		case t.is("("), t.is("["), t.is("{"):
			depth++
		case t.is(")"), t.is("]"), t.is("}"):
			depth--
		case t.is(",") && depth == 0:
			parts = append(parts, args[begin:i])
			begin = i + 1
		}
	}
	return append(parts, args[begin:])
}

// closing returns the index of the bracket that closes the one at open; the length of t if none does.
func closing(t []token, open int) int {
	depth := 0
	for i := open; i < len(t); i++ {
		switch {
		case t[i].is("("), t[i].is("["), t[i].is("{"):
			depth++
		case t[i].is(")"), t[i].is("]"), t[i].is("}"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(t)
}
