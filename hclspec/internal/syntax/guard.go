package syntax

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// HCL parses and evaluates by recursion, and a Go stack that overflows ends the process. These bounds are far above
// real files and far below an overflow.
const (
	maxNesting = 150
	maxChain   = 2000 // operators and operands between an expression and its innermost part
)

// Bounds on all files together. Each word, sign and line end takes some 100 bytes to parse, and as many in the result
// of the parser; each byte of a comment or of a text takes time.
const (
	maxTokens = 4_000_000
	maxSource = 32 << 20
)

// Conflict is the summary of the diagnostic for a file that git could not merge.
const Conflict = "Merge conflict"

// guard refuses a source that must not reach HCL's lexer: it is no text, or there is too much of it.
func (r *Reader) guard(src []byte, filename string) hcl.Diagnostics {
	if !utf8.Valid(src) {
		return oneAt(src, filename, invalidByte(src), "Not UTF-8 text",
			"The file has a byte here that is no UTF-8 text. Save it in UTF-8.")
	}
	if bytes.HasPrefix(src, []byte("\xef\xbb\xbf")) {
		return oneAt(src, filename, 0, "Byte order mark",
			"The file begins with a byte order mark. Save it in UTF-8 without one.")
	}
	if at := conflict(src); at >= 0 {
		return oneAt(src, filename, at, Conflict,
			"Two changes of the file were merged here, and git could not decide between them. Choose what is right, "+
				"and delete the lines with <<<<<<<, ======= and >>>>>>>.")
	}
	if at := r.tooLarge(src); at >= 0 {
		return oneAt(src, filename, at, "Too much to read", most())
	}
	return nil
}

// most describes the largest size of the files of a project.
func most() string {
	return fmt.Sprintf("The files of a project can have %d MiB, and about %d words and signs. Blocks that are alike "+
		"can be one block with for_each over a data file: csvdecode(file(\"data.csv\")).", maxSource>>20, maxTokens)
}

// Excess describes the largest size of the files of a project if a source is larger; empty: it is not.
func Excess(src []byte) string {
	if new(Reader).tooLarge(src) < 0 {
		return ""
	}
	return most()
}

// guardNesting refuses a source that must not reach HCL's parser: it is nested too deeply, has too long an expression,
// or writes a NUL character.
func guardNesting(src []byte, filename string) hcl.Diagnostics {
	if strings.HasSuffix(filename, ".json") {
		return guardJSON(src, filename)
	}
	// The diagnostics of the lexer come again from the parser.
	tokens, _ := hclsyntax.LexConfig(src, filename, hcl.InitialPos)
	return guardTokens(tokens)
}

// tooLarge returns the offset at which the files read so far and this one become too large; -1: they do not.
func (r *Reader) tooLarge(src []byte) int {
	if r.source += len(src); r.source > maxSource {
		return 0
	}
	word := false
	for i, c := range src {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9', c == '_', c >= 0x80 && c < 0xC0:
			if !word {
				r.tokens++
			}
			word = true
		case c == ' ' || c == '\t' || c == '\r':
			word = false
		default:
			r.tokens++
			word = false
		}
		if r.tokens > maxTokens {
			return i
		}
	}
	return -1
}

// conflict returns the offset of the first line that git writes into a file that it cannot merge; -1: there is none.
func conflict(src []byte) int {
	const ours, middle, theirs = "<<<<<<< ", "\n=======", "\n>>>>>>> "
	at := bytes.Index(src, []byte("\n"+ours)) + 1
	if at == 0 && !bytes.HasPrefix(src, []byte(ours)) {
		return -1
	}
	if rest := src[at:]; bytes.Contains(rest, []byte(middle)) && bytes.Contains(rest, []byte(theirs)) {
		return at
	}
	return -1
}

func invalidByte(src []byte) int {
	for i := 0; i < len(src); {
		r, n := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return 0
}

// nest is an open pair of brackets, quotes or braces.
type nest struct {
	kind       hclsyntax.TokenType
	chain      int // chain of the expression around it
	directives int // open %{ if } and %{ for } in a template
}

func guardTokens(tokens hclsyntax.Tokens) hcl.Diagnostics {
	open := []nest{{}}
	around, chain, directives := 0, 0, 0 // chain is that of this level, around the sum of all outer ones
	push := func(kind hclsyntax.TokenType) {
		open = append(open, nest{kind: kind, chain: chain})
		around, chain = around+chain, 1
	}
	pop := func() {
		if len(open) > 1 {
			last := open[len(open)-1]
			open = open[:len(open)-1]
			around, chain, directives = around-last.chain, last.chain+1, directives-last.directives
		}
	}
	for i, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenOHeredoc:
			push(t.Type)
		case hclsyntax.TokenTemplateControl:
			template := &open[len(open)-1]
			if i+1 < len(tokens) {
				switch string(tokens[i+1].Bytes) {
				case "if", "for":
					template.directives++
					directives++
				case "endif", "endfor":
					if template.directives > 0 {
						template.directives--
						directives--
					}
				}
			}
			push(t.Type)
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
			hclsyntax.TokenCHeredoc:
			pop()
		case hclsyntax.TokenTemplateSeqEnd:
			pop()
			chain = 0
		case hclsyntax.TokenComma:
			chain = 0
		case hclsyntax.TokenNewline:
			// Inside parentheses and brackets a line end does not end the expression.
			if kind := open[len(open)-1].kind; kind == 0 || kind == hclsyntax.TokenOBrace {
				chain = 0
			}
		case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit:
			if bytes.IndexByte(t.Bytes, 0) >= 0 || t.Type == hclsyntax.TokenQuotedLit && escapesNUL(t.Bytes) {
				return diag.New(hcl.DiagError, "NUL character", "A string cannot hold the character U+0000.", t.Range)
			}
		default:
			chain++
		}
		if len(open)-1+directives > maxNesting {
			return diag.New(hcl.DiagError, "Nested too deeply",
				fmt.Sprintf("Blocks, brackets and templates can be nested %d levels deep.", maxNesting), t.Range)
		}
		if around+chain > maxChain {
			return diag.New(hcl.DiagError, "Expression too long",
				fmt.Sprintf("One expression can have %d operators and operands. Use locals to divide it.", maxChain),
				t.Range)
		}
	}
	return nil
}

// escapesNUL reports whether a quoted literal writes U+0000 as an escape. An escaped backslash begins no escape.
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

// guardJSON checks the document and also every string in it, since the strings are templates. It splits the source as
// HCL does, which continues where other readers of JSON stop.
func guardJSON(src []byte, filename string) hcl.Diagnostics {
	depth := 0
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '{', '[':
			if depth++; depth > maxNesting {
				return oneAt(src, filename, i, "Nested too deeply",
					fmt.Sprintf("A document can be nested %d levels deep.", maxNesting))
			}
		case '}', ']':
			depth--
		case '"':
			end := endOfString(src, i)
			if diags := guardString(src, filename, i, end); diags != nil {
				return diags
			}
			i = end - 1
		}
	}
	return nil
}

// endOfString returns the offset behind a string of JSON, or of the place where the string breaks off.
func endOfString(src []byte, start int) int {
	escaping := false
	for i := start + 1; i < len(src); i++ {
		switch c := src[i]; {
		case c == '\\':
			escaping = !escaping
			continue
		case c == '"' && !escaping:
			return i + 1
		case c < ' ':
			return i
		}
		escaping = false
	}
	return len(src)
}

func guardString(src []byte, filename string, start, end int) hcl.Diagnostics {
	var text string
	if json.Unmarshal(src[start:end], &text) != nil {
		return nil // HCL reports the mistake, and evaluates nothing in the block
	}
	if strings.ContainsRune(text, 0) {
		return oneAt(src, filename, start, "NUL character", "A string cannot hold the character U+0000.")
	}
	if !strings.Contains(text, "${") && !strings.Contains(text, "%{") {
		return nil
	}
	tokens, _ := hclsyntax.LexTemplate([]byte(text), filename, hcl.InitialPos)
	diags := guardTokens(tokens)
	if diags != nil {
		at := placeOf(src, filename, start)
		diags[0].Subject = &at
	}
	return diags
}

// placeOf returns the range of one byte, by line and column.
func placeOf(src []byte, filename string, offset int) hcl.Range {
	line := bytes.Count(src[:offset], []byte("\n")) + 1
	column := utf8.RuneCount(src[bytes.LastIndexByte(src[:offset], '\n')+1:offset]) + 1
	start := hcl.Pos{Line: line, Column: column, Byte: offset}
	return hcl.Range{Filename: filename, Start: start,
		End: hcl.Pos{Line: line, Column: column + 1, Byte: min(offset+1, len(src))}}
}

func oneAt(src []byte, filename string, offset int, summary, detail string) hcl.Diagnostics {
	return diag.New(hcl.DiagError, summary, detail, placeOf(src, filename, offset))
}
