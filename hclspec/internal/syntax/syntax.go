// Package syntax parses files in native syntax and in JSON. It refuses files that are too large or too deep for a
// parser, and reports where mistakes in the syntax begin.
package syntax

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Reader parses the files of a project, which together may be as large as the bounds allow.
type Reader struct {
	source int // bytes of the files so far
	tokens int // about the number of words and signs in them
}

// File parses a file in native syntax, or in JSON if its name ends in ".json", and returns the places of its mistakes.
// The file is usable in spite of them.
func (r *Reader) File(src []byte, name string) (file *hcl.File, broken []hcl.Range, diags hcl.Diagnostics) {
	diags = r.guard(src, name)
	if diags == nil && !strings.HasSuffix(name, ".json") {
		if whole, ok := parsePieces(src, name); ok {
			return whole, nil, nil
		}
	}
	if diags == nil {
		diags = guardNesting(src, name)
	}
	if diags != nil {
		// The bytes are still needed to show the place.
		return &hcl.File{Bytes: src, Body: hcl.EmptyBody()}, []hcl.Range{*diags[0].Subject}, diags
	}
	if strings.HasSuffix(name, ".json") {
		file, diags = json.Parse(src, name)
	} else {
		file, diags = parse(src, name)
	}
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			broken = append(broken, diag.RangeOf(d))
		}
	}
	if file == nil || file.Body == nil {
		file = &hcl.File{Body: hcl.EmptyBody()}
	}
	file.Bytes = src
	return file, broken, diags
}

// Expression parses one expression; nil: it has a mistake.
func (r *Reader) Expression(src []byte, name string) (hclsyntax.Expression, hcl.Diagnostics) {
	if diags := append(r.guard(src, name), guardNesting(src, name)...); diags != nil {
		return nil, diags[:1]
	}
	expr, diags := hclsyntax.ParseExpression(src, name, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	return expr, diags
}

// Embedded parses an expression that a string of a file holds, at the place of the string; nil: it has a mistake.
func Embedded(text string, at hcl.Range) (hclsyntax.Expression, hcl.Diagnostics) {
	tokens, _ := hclsyntax.LexExpression([]byte(text), at.Filename, at.Start)
	if diags := guardTokens(tokens); diags != nil {
		return nil, diags
	}
	expr, diags := hclsyntax.ParseExpression([]byte(text), at.Filename, at.Start)
	if diags.HasErrors() {
		return nil, diags
	}
	return expr, diags
}

// parse parses the text of the file called name.
func parse(src []byte, name string) (*hcl.File, hcl.Diagnostics) {
	file, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	diags = withoutTheRest(diags)
	placeHeredoc(diags, src, name)
	for _, d := range diags {
		m := unassigned().FindSubmatch(lineOf(src, d.Subject.Start))
		if d.Summary == "Invalid block definition" && m != nil {
			d.Context, d.Subject.End = nil, d.Subject.Start // not into the next line
			d.Summary, d.Detail = "Missing equals sign", fmt.Sprintf("Write %s = %s. Only a block stands without an "+
				"equals sign, and its braces begin in the same line.", m[1], m[2])
		}
	}
	return file, diags
}

// unassigned matches an attribute without an equals sign, which the parser reads as a block.
var unassigned = lazyregexp.New(`^\s*([A-Za-z_][A-Za-z0-9_-]*)\s+("[^"{}]*"|[A-Za-z0-9_.]+)\s*(?:(?:#|//).*)?$`)

// lineOf returns the line of a file that holds a position.
func lineOf(src []byte, at hcl.Pos) []byte {
	begin := bytes.LastIndexByte(src[:at.Byte], '\n') + 1
	line, _, _ := bytes.Cut(src[begin:], []byte("\n"))
	return line
}

// placeHeredoc moves the diagnostic of an unclosed heredoc from the end of the file to the beginning of the heredoc.
func placeHeredoc(diags hcl.Diagnostics, src []byte, name string) {
	if len(diags) == 0 || diags[0].Summary != "Unterminated template string" {
		return
	}
	tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos)
	for i := range tokens { // the last one goes on to the end of the file
		if t := &tokens[i]; t.Type == hclsyntax.TokenOHeredoc {
			diags[0].Subject, diags[0].Summary = &t.Range, "Unclosed text"
			diags[0].Detail = fmt.Sprintf("The text that begins here ends with a line %s, and no such line follows.",
				strings.TrimLeft(strings.TrimSpace(string(t.Bytes)), "<-"))
		}
	}
}

// withoutTheRest keeps the first diagnostic of each mistake. A parser reports an unclosed quote in each line that
// follows, and reports consequences of a mistake in the rest of its line.
func withoutTheRest(diags hcl.Diagnostics) (kept hcl.Diagnostics) {
	for i, d := range diags {
		if d.Summary == "Invalid multi-line string" {
			own := *d
			own.Summary, own.Detail = "Unclosed quote",
				"A text in quotes ends in the line in which it begins, and here no closing quote follows. A text of "+
					"several lines begins with <<-EOT and ends with a line EOT."
			return append(kept, &own)
		}
		if i == 0 || d.Subject.Start.Line != diags[i-1].Subject.Start.Line {
			kept = append(kept, d)
		}
	}
	return kept
}
