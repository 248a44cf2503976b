package syntax

import (
	"bytes"
	"runtime"
	"slices"
	"sort"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// The files of large projects are long lists of short blocks. They are parsed block by block: on all processors,
// without the tokens of the whole file in memory, and mostly without guardTokens, since a short block cannot nest or
// chain too deeply.

// piece is a part of a file whose last line is a closing brace, as at the end of a block.
type piece struct {
	src   []byte
	start hcl.Pos
	file  *hcl.File
}

// parsePieces parses a file in native syntax piece by piece. It returns false if the file must be parsed as a whole: it
// is short, or it has a mistake, which only the whole file shows correctly.
func parsePieces(src []byte, name string) (*hcl.File, bool) {
	pieces := split(src)
	if len(pieces) < 8 {
		return nil, false
	}
	workers := runtime.GOMAXPROCS(0)
	fit := make([]bool, workers)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			fit[worker] = parseAll(pieces[worker*len(pieces)/workers:(worker+1)*len(pieces)/workers], name)
		})
	}
	group.Wait()
	if slices.Contains(fit, false) {
		return nil, false
	}
	whole := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}, SrcRange: pieces[0].body().SrcRange,
		EndRange: pieces[len(pieces)-1].body().EndRange}
	whole.SrcRange.End = whole.EndRange.End
	for _, p := range pieces {
		whole.Blocks = append(whole.Blocks, p.body().Blocks...)
	}
	return &hcl.File{Body: whole, Bytes: src, Nav: navigation(pieces)}, true
}

// parseAll parses pieces. It stops and returns false at the first piece that cannot be parsed by itself.
func parseAll(pieces []piece, name string) bool {
	for i := range pieces {
		if !pieces[i].parse(name) {
			return false
		}
	}
	return true
}

// split divides a source after each line that consists of a closing brace.
func split(src []byte) []piece {
	end := []byte("\n}\n")
	pieces := make([]piece, 0, bytes.Count(src, end)+1)
	pos := hcl.InitialPos
	for len(src) > 0 {
		n := len(src)
		if i := bytes.Index(src, end); i >= 0 {
			n = i + len(end)
		}
		pieces = append(pieces, piece{src: src[:n], start: pos})
		pos.Line += bytes.Count(src[:n], end[:1])
		pos.Byte += n
		src = src[n:]
	}
	return pieces
}

// parse parses the piece. It returns false if the piece has a mistake, something else than blocks, or too deep a
// nesting.
func (p *piece) parse(name string) bool {
	if !p.harmless() {
		tokens, _ := hclsyntax.LexConfig(p.src, name, p.start)
		if guardTokens(tokens) != nil {
			return false
		}
	}
	file, diags := hclsyntax.ParseConfig(p.src, name, p.start)
	if len(diags) > 0 || len(file.Body.(*hclsyntax.Body).Attributes) > 0 {
		return false
	}
	p.file = file
	return true
}

func (p *piece) body() *hclsyntax.Body { return p.file.Body.(*hclsyntax.Body) }

// harmless reports whether the piece is too short to be nested too deeply or to have too long an expression, and has no
// NUL character.
func (p *piece) harmless() bool {
	if len(p.src) > maxChain || bytes.Contains(p.src, []byte("0000")) || bytes.IndexByte(p.src, 0) >= 0 {
		return false
	}
	opens := 0
	for _, c := range p.src {
		if c == '(' || c == '[' || c == '{' || c == '"' || c == '<' {
			opens++
		}
	}
	return opens <= maxNesting
}

// navigation tells HCL's diagnostics in which block a byte of the file lies.
type navigation []piece

// ContextString implements the interface that HCL expects of hcl.File.Nav.
func (n navigation) ContextString(offset int) string {
	i := sort.Search(len(n), func(i int) bool { return n[i].start.Byte > offset }) - 1
	if i < 0 {
		return ""
	}
	inner, ok := n[i].file.Nav.(interface{ ContextString(offset int) string })
	if !ok {
		return ""
	}
	return inner.ContextString(offset)
}
