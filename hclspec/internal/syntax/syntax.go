// Package syntax parses files in native syntax, and says of mistakes in the syntax where they begin.
package syntax

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Parse parses the text of the file that is called name.
func Parse(src []byte, name string) (*hcl.File, hcl.Diagnostics) {
	file, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	diags = withoutTheRest(diags)
	placeHeredoc(diags, src, name)
	return file, diags
}

// placeHeredoc tells of a heredoc that is not closed where the heredoc begins, and not at the end of the file.
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

// withoutTheRest keeps what tells of a mistake first. A parser tells of a quote that is not closed in each line that
// follows, and in a line of what follows from the first mistake in it.
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
