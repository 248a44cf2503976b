package eval

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// maxText bounds the characters that one local value may hold; repeated doubling would otherwise fill the memory.
const maxText = 256 << 20

// DefineLocals makes local.* out of the locals blocks. Each value is evaluated when it is first needed.
func (s *Scope) DefineLocals(blocks []*Block) {
	attrs := hcl.Attributes{}
	for _, b := range blocks {
		for name, attr := range b.Attrs {
			if first, ok := attrs[name]; ok {
				s.Diags.Error("", attr.NameRange, "Duplicate local value",
					fmt.Sprintf("%q is defined already at %s.", name, first.NameRange))
				continue
			}
			attrs[name] = attr
		}
	}
	done := map[string]cty.Value{}
	get := func(name string) (cty.Value, bool) {
		attr, ok := attrs[name]
		if !ok {
			return cty.NilVal, false
		}
		if v, ok := done[name]; ok {
			return v, true
		}
		leave, ok := s.Enter("local."+name, attr.NameRange)
		if !ok {
			return cty.DynamicVal, true
		}
		defer leave()
		v := s.Static(attr.Expr)
		if size(v) > maxText {
			s.Diags.Error("", attr.Expr.Range(), "Value too large", "A local value can hold 256 MiB of text.")
			v = cty.DynamicVal
		}
		done[name] = v
		return v, true
	}
	s.Roots["local"] = Root{
		What:  "local value",
		Names: func() []string { return slices.Collect(maps.Keys(attrs)) },
		Get:   get,
		All:   func() cty.Value { return gather(slices.Sorted(maps.Keys(attrs)), get) },
	}
}

// gather is the object of all that a root has.
func gather(names []string, get func(string) (cty.Value, bool)) cty.Value {
	all := map[string]cty.Value{}
	for _, name := range names {
		all[name], _ = get(name)
	}
	return cty.ObjectVal(all)
}

// size is the number of bytes of text in v.
func size(v cty.Value) int {
	total := 0
	// The callback returns no error, so neither does Walk.
	_ = cty.Walk(v, func(_ cty.Path, v cty.Value) (bool, error) {
		if v.IsKnown() && !v.IsNull() && v.Type() == cty.String {
			total += len(v.AsString())
		}
		return total <= maxText, nil
	})
	return total
}
