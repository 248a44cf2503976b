package variable

import (
	"fmt"
	"maps"
	"slices"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// DefineLocals defines local.* from the locals blocks. Each value is evaluated when it is first needed.
func DefineLocals(s *eval.Scope, blocks []*eval.Block) {
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
		done[name] = s.Static(attr.Expr)
		return done[name], true
	}
	s.Roots["local"] = eval.Root{
		What:  "local value",
		Names: func() []string { return slices.Collect(maps.Keys(attrs)) },
		Get:   get,
		All:   func() cty.Value { return gather(slices.Sorted(maps.Keys(attrs)), get) },
	}
}

// gather returns the object of all values of a root.
func gather(names []string, get func(string) (cty.Value, bool)) cty.Value {
	all := map[string]cty.Value{}
	for _, name := range names {
		all[name], _ = get(name)
	}
	return cty.ObjectVal(all)
}
