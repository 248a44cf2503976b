package eval

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// HCL parses and evaluates by recursion, and a Go stack that overflows ends the process. These bounds are far above what
// people write and far below what overflows.
const (
	maxNesting = 150
	maxChain   = 2000 // operators and operands between two commas or line ends
)

// guard says what in the source must not reach HCL's parser: nesting without bound and NUL characters, which frame
// references.
func guard(src []byte, filename string) hcl.Diagnostics {
	if strings.HasSuffix(filename, ".json") {
		return guardJSON(src, filename)
	}
	// The diagnostics of the lexer come again from the parser.
	tokens, _ := hclsyntax.LexConfig(src, filename, hcl.InitialPos)
	return guardTokens(tokens)
}

func guardTokens(tokens hclsyntax.Tokens) hcl.Diagnostics {
	var open []hclsyntax.TokenType
	chain := 0
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl, hclsyntax.TokenOHeredoc:
			open = append(open, t.Type)
			chain++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
			hclsyntax.TokenCHeredoc:
			open = open[:max(0, len(open)-1)]
		case hclsyntax.TokenTemplateSeqEnd:
			open = open[:max(0, len(open)-1)]
			chain = 0
		case hclsyntax.TokenComma:
			chain = 0
		case hclsyntax.TokenNewline:
			// Inside parentheses and brackets a line end does not end the expression.
			if len(open) == 0 || open[len(open)-1] == hclsyntax.TokenOBrace {
				chain = 0
			}
		case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit:
			if bytes.IndexByte(t.Bytes, 0) >= 0 || t.Type == hclsyntax.TokenQuotedLit && escapesNUL(t.Bytes) {
				return one(hcl.DiagError, "NUL character", "A string cannot hold the character U+0000.", t.Range)
			}
		default:
			chain++
		}
		if len(open) > maxNesting {
			return one(hcl.DiagError, "Nested too deeply", "Blocks, brackets and templates can be nested 150 levels deep.", t.Range)
		}
		if chain > maxChain {
			return one(hcl.DiagError, "Expression too long",
				"One expression can have 2000 operators and operands. Use locals to divide it.", t.Range)
		}
	}
	return nil
}

// escapesNUL says whether a quoted literal writes U+0000 as an escape. A backslash that is escaped itself begins none.
func escapesNUL(quoted []byte) bool {
	for i := 0; i < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		if rest := quoted[i:]; bytes.HasPrefix(rest, []byte(`\u0000`)) || bytes.HasPrefix(rest, []byte(`\U00000000`)) {
			return true
		}
		i++
	}
	return false
}

// guardJSON checks the document and, since the strings of it are templates, every string of it, too.
func guardJSON(src []byte, filename string) hcl.Diagnostics {
	decoder := json.NewDecoder(bytes.NewReader(src))
	depth, line := 0, lines{src: src, filename: filename}
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil // the end, or what HCL's parser reports with its place
		}
		switch token := token.(type) {
		case json.Delim:
			if token == '{' || token == '[' {
				depth++
			} else {
				depth--
			}
			if depth > maxNesting {
				return one(hcl.DiagError, "Nested too deeply", "A document can be nested 150 levels deep.", line.at(decoder.InputOffset()))
			}
		case string:
			if strings.ContainsRune(token, 0) {
				return one(hcl.DiagError, "NUL character", "A string cannot hold the character U+0000.", line.at(decoder.InputOffset()))
			}
			if strings.Contains(token, "${") || strings.Contains(token, "%{") {
				inner, _ := hclsyntax.LexTemplate([]byte(token), filename, hcl.InitialPos)
				if diags := guardTokens(inner); diags != nil {
					place := line.at(decoder.InputOffset())
					diags[0].Subject = &place
					return diags
				}
			}
		}
	}
}

// lines finds the line and column of a byte.
type lines struct {
	src      []byte
	filename string
}

func (l lines) at(offset int64) hcl.Range {
	end := min(max(int(offset), 1), len(l.src))
	line := bytes.Count(l.src[:end-1], []byte("\n")) + 1
	column := end - 1 - (bytes.LastIndexByte(l.src[:end-1], '\n') + 1) + 1
	start := hcl.Pos{Line: line, Column: column, Byte: end - 1}
	return hcl.Range{Filename: l.filename, Start: start, End: hcl.Pos{Line: line, Column: column + 1, Byte: end}}
}

func one(severity hcl.DiagnosticSeverity, summary, detail string, at hcl.Range) hcl.Diagnostics {
	d := &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: detail}
	if at != (hcl.Range{}) {
		d.Subject = &at
	}
	return hcl.Diagnostics{d}
}
