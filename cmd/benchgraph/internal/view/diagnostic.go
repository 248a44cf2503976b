package view

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/mitchellh/go-wordwrap"

	"github.com/benchgraph/benchgraph/internal/printable"
)

// Diagnostic is a diagnostic in JSON.
type Diagnostic struct {
	Severity string `json:"severity"` // error or warning
	Message  string `json:"message"`
	Detail   string `json:"detail,omitempty"` // cause and remedy
	Place    string `json:"place,omitempty"`  // file:line:column
}

// Diagnostics converts diagnostics of the user's files.
func Diagnostics(diags hcl.Diagnostics) []Diagnostic {
	views := make([]Diagnostic, len(diags))
	for i, d := range diags {
		v := Diagnostic{Severity: "error", Message: d.Summary, Detail: d.Detail}
		if d.Severity == hcl.DiagWarning {
			v.Severity = "warning"
		}
		if d.Subject != nil && d.Subject.Filename != "" {
			v.Place = fmt.Sprintf("%s:%d:%d", d.Subject.Filename, d.Subject.Start.Line, d.Subject.Start.Column)
		}
		views[i] = v
	}
	return views
}

// Diagnostic returns the text of a diagnostic, with the lines of the file that it concerns; file may be nil. Words
// are wrapped at width columns, unless width is 0. HCL's own writer reads the whole file for each diagnostic and
// prints lines of any length.
func (s Style) Diagnostic(d *hcl.Diagnostic, file *hcl.File, width int) string {
	severity := s.Error("Error")
	if d.Severity == hcl.DiagWarning {
		severity = s.Paint(Yellow, "Warning")
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s\n\n", severity, Clean(d.Summary))
	if d.Subject != nil {
		out.WriteString(s.place(d, file))
	}
	if detail := printable.Lines(d.Detail); detail != "" {
		if width > 0 {
			detail = wordwrap.WrapString(detail, uint(width))
		}
		fmt.Fprintf(&out, "%s\n\n", detail)
	}
	return out.String()
}

// place returns the place of a diagnostic, with the lines of its subject and context.
func (s Style) place(d *hcl.Diagnostic, file *hcl.File) string {
	at := fmt.Sprintf("  on %s line %d", Clean(d.Subject.Filename), d.Subject.Start.Line)
	if file == nil || file.Bytes == nil {
		return at + ":\n  (source code not available)\n\n"
	}
	if nav, ok := file.Nav.(interface{ ContextString(offset int) string }); ok {
		if around := nav.ContextString(d.Subject.Start.Byte); around != "" {
			at += ", in " + Clean(around)
		}
	}
	whole := *d.Subject
	if d.Context != nil && d.Context.End.Byte-d.Context.Start.Byte <= 2000 {
		whole = hcl.RangeOver(whole, *d.Context)
	}
	return at + ":\n" + s.excerpt(file.Bytes, whole, *d.Subject) + "\n"
}

// Limits of an excerpt: the number of lines, and the part of a long line around the place.
const (
	maxLines  = 20
	maxLine   = 1000
	maxBefore = 60
	maxAfter  = 100
)

// excerpt returns the lines of a range of src, with their numbers. The marked range must begin in one of them.
func (s Style) excerpt(src []byte, shown, marked hcl.Range) string {
	limit := func(offset int) int { return min(max(offset, 0), len(src)) }
	from, to := limit(marked.Start.Byte), limit(marked.End.Byte)
	if to <= from { // an empty range: mark the next character
		_, size := utf8.DecodeRune(src[from:])
		to = from + size
	}
	start := bytes.LastIndexByte(src[:limit(shown.Start.Byte)], '\n') + 1
	end := max(limit(shown.End.Byte), start)
	if shown.End.Byte > shown.Start.Byte && end > start && src[end-1] == '\n' {
		end-- // without the next line
	}
	var out strings.Builder
	for number := shown.Start.Line; start <= end; number++ {
		if number == shown.Start.Line+maxLines {
			out.WriteString("      …\n")
			break
		}
		line, _, _ := bytes.Cut(src[start:], []byte("\n"))
		next := start + len(line) + 1
		line = printable.WithoutPasswords(bytes.TrimSuffix(line, []byte("\r")))
		first := min(max(from-start, 0), len(line))
		last := min(max(to-start, first), len(line))
		before, middle, after := line[:first], line[first:last], line[last:]
		if len(line) > maxLine {
			before, middle, after = ending(before, maxBefore), beginning(middle, maxAfter), beginning(after, maxAfter)
		}
		fmt.Fprintf(&out, "%4d: %s%s%s\n", number, printable.Source(before), s.mark(string(printable.Source(middle))),
			printable.Source(after))
		start = next
	}
	return out.String()
}

func (s Style) mark(text string) string { return s.Paint("1;4", text) }

// beginning and ending cut a text to at most most bytes, at a character.
func beginning(text []byte, most int) []byte {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return append(text[:most:most], "…"...)
}

func ending(text []byte, most int) []byte {
	if len(text) <= most {
		return text
	}
	from := len(text) - most
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return append([]byte("…"), text[from:]...)
}
