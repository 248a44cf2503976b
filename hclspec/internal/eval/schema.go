package eval

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/internal/nearest"
)

// Schema describes the content of a kind of block.
type Schema struct {
	Kind   string
	Label  bool     // the block has a name
	Key    []string // attributes that are part of the key of the block's nodes
	Free   []string // attributes that are not
	Blocks []*Schema
	Many   bool // a nested block that may occur more than once
	Open   bool // any attribute is allowed
}

// Block is a block of the file before its evaluation.
type Block struct {
	Schema *Schema
	Name   string // the label
	Range  hcl.Range
	Label  hcl.Range // of the label, or of the header if there is none
	Attrs  hcl.Attributes
	blocks []*Block
	meant  []string // meanings of the misspelt names in the block
}

// Meant reports whether a name in the block is probably a misspelling of name, so that name is not missing.
func (b *Block) Meant(name string) bool { return slices.Contains(b.meant, name) }

// Misspelt reports whether any name in the block is misspelt.
func (b *Block) Misspelt() bool { return len(b.meant) > 0 }

var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// unknownName finds the name in HCL's message about a name that is not in the schema.
var unknownName = lazyregexp.New(`^(?:An argument named|Blocks of type|No argument or block type is named) "([^"]+)"`)

// suggest adds the probable meaning of an unknown name to HCL's diagnostics, and returns those meanings. HCL itself
// suggests neither a block for an attribute nor a name that the block already has.
func (s *Schema) suggest(diags hcl.Diagnostics) []string {
	attrs := slices.Concat(s.Key, s.Free)
	var blocks, meant []string
	for _, nested := range s.Blocks {
		blocks = append(blocks, nested.Kind)
	}
	for _, d := range diags {
		m := unknownName().FindStringSubmatch(d.Detail)
		if m == nil {
			continue
		}
		name := m[1]
		best := nearest.Name(name, slices.Concat(attrs, blocks))
		switch {
		case slices.Contains(blocks, name):
			best = name
			d.Detail = fmt.Sprintf("%s is a block here: write %s { … } without an equals sign.", name, name)
		case slices.Contains(attrs, name):
			best = name
			d.Detail = fmt.Sprintf("%s is an argument here: write %s = VALUE.", name, name)
		case best != "":
			d.Detail = fmt.Sprintf("%q is not expected here. Did you mean %q?", name, best)
		default:
			d.Detail = fmt.Sprintf("%q is not expected here.%s", name, diag.Choices(name, slices.Concat(attrs, blocks)))
		}
		if best != "" {
			meant = append(meant, best)
		}
	}
	return meant
}

// Blocks returns the nested blocks of a kind, in the order of the file.
func (b *Block) Blocks(kind string) []*Block {
	var found []*Block
	for _, nested := range b.blocks {
		if nested.Schema.Kind == kind {
			found = append(found, nested)
		}
	}
	return found
}

// Block returns the nested block of a kind that may occur once; nil: there is none.
func (b *Block) Block(kind string) *Block {
	for _, nested := range b.blocks {
		if nested.Schema.Kind == kind {
			return nested
		}
	}
	return nil
}

// Expressions returns all expressions in the block and its nested blocks, in the order of the file, without those of
// the named attributes of the block itself.
func (b *Block) Expressions(except ...string) []hcl.Expression {
	var all []hcl.Expression
	for name, attr := range b.Attrs {
		if !slices.Contains(except, name) {
			all = append(all, attr.Expr)
		}
	}
	for _, nested := range b.blocks {
		all = append(all, nested.Expressions()...)
	}
	slices.SortFunc(all, func(a, b hcl.Expression) int {
		return cmp.Compare(a.Range().Start.Byte, b.Range().Start.Byte)
	})
	return all
}

func (s *Schema) header() hcl.BlockHeaderSchema {
	h := hcl.BlockHeaderSchema{Type: s.Kind}
	if s.Label {
		h.LabelNames = []string{"name"}
	}
	return h
}

func (s *Schema) body() *hcl.BodySchema {
	body := &hcl.BodySchema{}
	for _, name := range slices.Concat(s.Key, s.Free) {
		body.Attributes = append(body.Attributes, hcl.AttributeSchema{Name: name})
	}
	for _, nested := range s.Blocks {
		body.Blocks = append(body.Blocks, nested.header())
	}
	return body
}

func (s *Schema) read(raw *hcl.Block) (*Block, hcl.Diagnostics) {
	b := &Block{Schema: s, Range: raw.DefRange, Label: raw.DefRange}
	if s.Label {
		// References and keys of for_each are in this form of Unicode, too.
		b.Name, b.Label = cty.NormalizeString(raw.Labels[0]), raw.LabelRanges[0]
	}
	if s.Open {
		attrs, diags := raw.Body.JustAttributes()
		b.Attrs = attrs
		return b, diags
	}
	if s.readPlain(b, raw) {
		return b, nil
	}
	content, diags := raw.Body.Content(s.body())
	b.meant = s.suggest(diags)
	b.Attrs = content.Attributes
	for _, inner := range content.Blocks {
		nested := s.nested(inner.Type)
		if first := b.Block(inner.Type); first != nil && !nested.Many {
			diags = append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError,
				Summary:  fmt.Sprintf("Duplicate %s block", inner.Type),
				Detail: fmt.Sprintf("There is a %s block in this %s already, at %s.", inner.Type, s.Kind,
					first.Range),
				Subject: &inner.DefRange,
			})
			continue
		}
		block, more := nested.read(inner)
		diags = append(diags, more...)
		b.blocks = append(b.blocks, block)
	}
	return b, diags
}

// readPlain reads a block in native syntax that has only attributes of the schema, as most blocks have; false: it is
// another one.
func (s *Schema) readPlain(b *Block, raw *hcl.Block) bool {
	body, ok := raw.Body.(*hclsyntax.Body)
	if !ok || len(body.Blocks) > 0 {
		return false
	}
	attrs := make(hcl.Attributes, len(body.Attributes))
	for name, attr := range body.Attributes {
		if !slices.Contains(s.Key, name) && !slices.Contains(s.Free, name) {
			return false
		}
		attrs[name] = attr.AsHCLAttribute()
	}
	b.Attrs = attrs
	return true
}

func (s *Schema) nested(kind string) *Schema {
	for _, nested := range s.Blocks {
		if nested.Kind == kind {
			return nested
		}
	}
	return nil
}
