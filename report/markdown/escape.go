package markdown

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/benchgraph/benchgraph/internal/printable"
)

const mostEvidence = 400 // runes of a log line that a table shows

// shorten cuts evidence, and only evidence, to the width of a table and states the number of missing bytes.
func shorten(s string) string {
	runes := []rune(s)
	if len(runes) <= mostEvidence {
		return s
	}
	return fmt.Sprintf("%s … (%d more characters in the log)", string(runes[:mostEvidence]), len(runes)-mostEvidence)
}

// prose escapes text for a Markdown sentence or cell, so that it reads as it stands. An underscore between letters or
// digits means nothing to Markdown and stays, because names of metrics are searched for.
func prose(s string) string {
	runes := []rune(printable.Line(s))
	var b strings.Builder
	for i, r := range runes {
		switch {
		case r == '_' && i > 0 && i+1 < len(runes) && plainRune(runes[i-1]) && plainRune(runes[i+1]):
		case r == ':' && i+2 < len(runes) && runes[i+1] == '/' && runes[i+2] == '/':
			b.WriteByte('\\') // else a bare URL becomes a link
		case r == '.' && i >= 3 && strings.EqualFold(string(runes[i-3:i]), "www"), r == '@':
			b.WriteByte('\\')
		case strings.ContainsRune("\\`*_[]<>|~&#!$", r), i == 0 && strings.ContainsRune("-+=", r):
			b.WriteByte('\\')
		case (r == '.' || r == ')') && endsNumber(runes, i):
			b.WriteByte('\\') // else a number at the start becomes a list
		}
		b.WriteRune(r)
	}
	return b.String()
}

func plainRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// endsNumber says whether runes begin with a number that ends before i and stands alone. Markdown's have 9 digits at
// most.
func endsNumber(runes []rune, i int) bool {
	return i > 0 && i <= 9 && (i+1 == len(runes) || runes[i+1] == ' ') &&
		strings.Trim(string(runes[:i]), "0123456789") == ""
}

// code shows text as Markdown code, outside a table.
func code(s string) string {
	s = printable.Line(s)
	if s == "" {
		return ""
	}
	longest, run := 0, 0
	for _, r := range s {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// codeCell shows text as code in a cell of a table, where a pipe is escaped even within code. Readers disagree about a
// backslash before a pipe, so such text is shown as prose.
func codeCell(s string) string {
	if strings.Contains(printable.Line(s), `\|`) {
		return prose(s)
	}
	return strings.ReplaceAll(code(s), "|", `\|`)
}
