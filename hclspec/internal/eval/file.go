// Package eval is the base of the language: files and their blocks, names that are evaluated when they are first
// needed, and one diagnostic for each mistake.
//
// It knows no kind of block: callers define roots, which are the first parts of references, and their values. An
// expression with a mistake becomes an unknown value, and whatever depends on it reports no further mistake.
package eval

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// File is one parsed file.
type File struct {
	Syntax *hcl.File
	scope  *Scope
	broken []hcl.Range
	lost   []string
}

// Parse reads a file in native syntax, or in JSON if its name ends in ".json". The file is usable even if the
// diagnostics have errors: blocks outside of the mistakes are intact.
func (s *Scope) Parse(src []byte, name string) (*File, hcl.Diagnostics) {
	f := &File{scope: s}
	var diags hcl.Diagnostics
	f.Syntax, f.broken, diags = s.source.File(src, name)
	return f, diags
}

// Broken reports whether the file has a syntax error, so that only a part of its declarations is known.
func (f *File) Broken() bool { return len(f.broken) > 0 }

// Lost returns the names of blocks with an unknown kind. It must be called after Blocks.
func (f *File) Lost() []string { return f.lost }

// Blocks returns the intact blocks of the file that match the schemas.
func (f *File) Blocks(schemas []*Schema) ([]*Block, hcl.Diagnostics) {
	byKind := map[string]*Schema{}
	top := &hcl.BodySchema{}
	for _, s := range schemas {
		byKind[s.Kind] = s
		top.Blocks = append(top.Blocks, s.header())
	}
	if body, ok := f.Syntax.Body.(*hclsyntax.Body); ok {
		for _, b := range body.Blocks {
			if s := byKind[b.Type]; s == nil {
				f.lost = append(f.lost, b.Labels...)
			} else if s.Label && s.Open && len(b.Labels) == 2 { // a type and a name
				// Diagnostics need the labels as they are in the file.
				defer func(labels []string, ranges []hcl.Range) {
					b.Labels, b.LabelRanges = labels, ranges
				}(b.Labels, b.LabelRanges)
				b.Labels, b.LabelRanges = []string{strings.Join(b.Labels, "-")}, b.LabelRanges[:1]
			}
		}
	}
	content, diags := f.Syntax.Body.Content(top)
	(&Schema{Blocks: schemas}).suggest(diags)
	if f.Broken() {
		diags = f.intact(diags)
	}
	var blocks []*Block
	for _, raw := range content.Blocks {
		if f.damaged(raw) {
			continue
		}
		block, more := byKind[raw.Type].read(raw)
		diags = append(diags, more...)
		diags = append(diags, f.scope.adaptBlock(block)...)
		blocks = append(blocks, block)
	}
	return blocks, diags
}

// damaged reports whether a syntax error lies in the block, so that attributes may be lost.
func (f *File) damaged(b *hcl.Block) bool {
	whole := b.DefRange
	if body, ok := b.Body.(*hclsyntax.Body); ok {
		whole = hcl.RangeBetween(b.DefRange, body.SrcRange)
	}
	for _, r := range f.broken {
		if r.Start.Byte >= whole.Start.Byte && r.Start.Byte <= whole.End.Byte {
			return true
		}
	}
	return false
}

// intact removes the diagnostics in lines with a syntax error.
func (f *File) intact(diags hcl.Diagnostics) hcl.Diagnostics {
	var kept hcl.Diagnostics
	for _, d := range diags {
		far := true
		for _, r := range f.broken {
			far = far && (d.Subject == nil || d.Subject.Start.Line != r.Start.Line)
		}
		if far {
			kept = append(kept, d)
		}
	}
	return kept
}

// Attributes returns the content of a file with attributes only.
func (f *File) Attributes() (hcl.Attributes, hcl.Diagnostics) {
	attrs, diags := f.Syntax.Body.JustAttributes()
	for _, attr := range attrs {
		diags = append(diags, f.scope.adaptAttribute(attr)...)
	}
	return attrs, diags
}

// ParseExpression reads one expression.
func (s *Scope) ParseExpression(src []byte, name string) (hcl.Expression, hcl.Diagnostics) {
	expr, diags := s.source.Expression(src, name)
	if expr == nil {
		return nil, diags
	}
	return s.adapt(expr), diags
}
