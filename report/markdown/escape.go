package markdown

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/benchgraph/benchgraph/internal/printable"
)

const mostEvidence = 400 // characters of evidence in a table

// shorten cuts text that is too long for a table, and states the number of missing characters.
func shorten(s string) string {
	runes := []rune(s)
	if len(runes) <= mostEvidence {
		return s
	}
	return fmt.Sprintf("%s … (%d more characters in the log)", string(runes[:mostEvidence]), len(runes)-mostEvidence)
}

// prose escapes text for a Markdown sentence or cell, so that it is shown literally. An underscore between letters or
// digits needs no escape, and stays so that names of metrics can be searched for.
func prose(s string) string {
	runes := []rune(printable.Line(s))
	var b strings.Builder
	for i, r := range runes {
		switch {
		case r == '_' && i > 0 && i+1 < len(runes) && plainRune(runes[i-1]) && plainRune(runes[i+1]):
		case r == ':' && i+2 < len(runes) && runes[i+1] == '/' && runes[i+2] == '/':
			b.WriteByte('\\') // a bare URL would become a link
		case r == '.' && i >= 3 && strings.EqualFold(string(runes[i-3:i]), "www"), r == '@':
			b.WriteByte('\\')
		case strings.ContainsRune("\\`*_[]<>|~&#!$", r), i == 0 && strings.ContainsRune("-+=", r):
			b.WriteByte('\\')
		case (r == '.' || r == ')') && endsNumber(runes, i):
			b.WriteByte('\\') // a leading number would become a list
		}
		b.WriteRune(r)
	}
	return b.String()
}

func plainRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// endsNumber reports whether the runes begin with a number that ends before i and stands alone. In Markdown, it has
// at most 9 digits.
func endsNumber(runes []rune, i int) bool {
	return i > 0 && i <= 9 && (i+1 == len(runes) || runes[i+1] == ' ') &&
		strings.Trim(string(runes[:i]), "0123456789") == ""
}

// code returns text as Markdown code, outside a table.
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

// codeCell returns text as code in a table cell, where a pipe is escaped even in code. Since readers disagree about a
// backslash before a pipe, such text is shown as prose.
func codeCell(s string) string {
	if strings.Contains(printable.Line(s), `\|`) {
		return prose(s)
	}
	return strings.ReplaceAll(code(s), "|", `\|`)
}
