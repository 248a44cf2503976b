package sh

import (
	"strings"
)

// readWord reads one word, in which quotes and variables count.
func (p *shellParser) readWord() Word {
	var w Word
	var b strings.Builder
	for p.at < len(p.in) {
		c := p.in[p.at]
		switch {
		case strings.IndexByte(" \t\r\n;|&()<>", c) >= 0:
			w.Text = b.String()
			return w
		case c == '\'':
			p.at++
			i := strings.IndexByte(p.in[p.at:], '\'')
			if i < 0 {
				p.gaveUp, p.at = true, len(p.in)
				break
			}
			b.WriteString(p.in[p.at : p.at+i])
			p.at += i + 1
			w.quoted = true
		case c == '"':
			p.at++
			inner := p.doubleQuoted(true)
			b.WriteString(inner.Text)
			w.Partial, w.quoted, w.Unset = w.Partial || inner.Partial, true, append(w.Unset, inner.Unset...)
		case c == '\\':
			p.at++
			if p.at < len(p.in) {
				if p.in[p.at] != '\n' {
					b.WriteByte(p.in[p.at])
				}
				p.at++
			}
		case c == '$' || c == '`':
			p.expand(&b, &w)
		case c == '*' || c == '?' || c == '[' && b.Len() > 0:
			w.Partial = true
			b.WriteByte(c)
			p.at++
		default:
			b.WriteByte(c)
			p.at++
		}
	}
	w.Text = b.String()
	return w
}

// doubleQuoted reads up to the closing quote, or all that there is.
func (p *shellParser) doubleQuoted(closes bool) Word {
	var w Word
	var b strings.Builder
	for p.at < len(p.in) {
		c := p.in[p.at]
		switch {
		case c == '"' && closes:
			p.at++
			w.Text = b.String()
			return w
		case c == '\\' && closes && p.at+1 < len(p.in):
			if next := p.in[p.at+1]; strings.IndexByte("$`\"\\\n", next) < 0 {
				b.WriteByte(c)
				b.WriteByte(next)
			} else if next != '\n' {
				b.WriteByte(next)
			}
			p.at += 2
		case c == '$' || c == '`' && closes:
			p.expand(&b, &w)
		default:
			b.WriteByte(c)
			p.at++
		}
	}
	p.gaveUp = p.gaveUp || closes
	w.Text = b.String()
	return w
}

// expand reads a variable or a substitution.
func (p *shellParser) expand(b *strings.Builder, w *Word) {
	rest := p.in[p.at:]
	switch {
	case rest[0] == '`':
		i := strings.IndexByte(rest[1:], '`')
		if i < 0 {
			i, p.gaveUp = len(rest)-2, true
		}
		p.at += i + 2
		w.Partial = true
	case strings.HasPrefix(rest, "$("):
		p.at += balanced(rest[1:], '(', ')') + 1
		w.Partial = true
	case strings.HasPrefix(rest, "${"):
		n := balanced(rest[1:], '{', '}')
		p.at += n + 1
		p.substitute(strings.TrimSuffix(rest[2:n+1], "}"), b, w)
	default:
		n := 1
		for n < len(rest) && isNameByte(rest[n], n > 1) {
			n++
		}
		if n == 1 {
			if len(rest) > 1 && strings.IndexByte("@*#?-$!0123456789", rest[1]) >= 0 {
				p.at += 2
				w.Partial = true
				return
			}
			b.WriteByte('$')
			p.at++
			return
		}
		p.at += n
		p.variable(rest[1:n], true, b, w)
	}
}

// substitute is what stands between the braces of ${…}.
func (p *shellParser) substitute(text string, b *strings.Builder, w *Word) {
	n := 0
	for n < len(text) && isNameByte(text[n], n > 0) {
		n++
	}
	name, op := text[:n], text[n:]
	switch {
	case name != "" && op == "":
		p.variable(name, true, b, w)
	case name != "" && (strings.HasPrefix(op, ":-") || strings.HasPrefix(op, "-")):
		if _, set := p.vars[name]; set || runtimeVars[name] || strings.ContainsAny(op, "$`") {
			p.variable(name, false, b, w)
			return
		}
		b.WriteString(strings.TrimPrefix(strings.TrimPrefix(op, ":"), "-"))
	default:
		w.Partial = true
	}
}

func (p *shellParser) variable(name string, must bool, b *strings.Builder, w *Word) {
	value, set := p.vars[name]
	switch {
	case name == "SRC" || name == "SITE":
		b.WriteString(WorkDir)
	case set:
		b.WriteString(value.Text)
		w.Partial = w.Partial || value.Partial
	default:
		b.WriteString("$" + name)
		w.Partial = true
		if _, any := p.vars["\x00any"]; must && !any && !runtimeVars[name] {
			w.Unset = append(w.Unset, name)
		}
	}
}

// balanced is the length of a text up to the bracket that closes the one at its beginning.
func balanced(text string, open, closing byte) int {
	depth, quote := 0, byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == open:
			depth++
		case c == closing:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

func isNameByte(c byte, digits bool) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || digits && c >= '0' && c <= '9'
}

func isName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i], i > 0) {
			return false
		}
	}
	return s != ""
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
