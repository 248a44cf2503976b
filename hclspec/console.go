package hclspec

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

// Eval evaluates one expression as if it stood in the project's files, and writes the value in HCL; a reference stands as
// its address. The diagnostics are those of the expression and of what it needs. A project without a root file is empty.
func Eval(o Options, expr string) (string, map[string]*hcl.File, hcl.Diagnostics) {
	l, err := newLoader(o)
	if err != nil {
		return "", nil, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "No project", Detail: err.Error() + "."}}
	}
	defer l.dir.Close()
	l.read()
	if len(l.names) == 0 && o.File == "" {
		l.scope.Diags = &eval.Diagnostics{}
	}
	l.declare()
	const name = "<expression>"
	l.files[name] = &hcl.File{Bytes: []byte(expr)}
	parsed, diags := l.scope.ParseExpression([]byte(expr), name)
	l.scope.Diags.Add("", diags...)
	if diags.HasErrors() {
		return "", l.files, diags
	}
	v := l.scope.Static(parsed)
	diags = l.scope.Diags.All(append(l.names, name))
	if !v.IsWhollyKnown() && diags.HasErrors() {
		return "", l.files, diags
	}
	return string(hclwrite.Format(valueTokens(v).Bytes())), l.files, diags
}

// valueTokens writes a value in HCL.
func valueTokens(v cty.Value) hclwrite.Tokens {
	raw := func(text string) hclwrite.Tokens {
		return hclwrite.Tokens{{Type: hclsyntax.TokenIdent, Bytes: []byte(text)}}
	}
	switch ty := v.Type(); {
	case !v.IsKnown():
		return raw("(not known)")
	case v.IsNull():
		return raw("null")
	case ty == cty.String:
		text, _ := splitTokens(v.AsString())
		if a, ok := text.single(); ok {
			return raw(a.String())
		}
		return hclwrite.TokensForValue(cty.StringVal(text.String()))
	case ty.IsPrimitiveType():
		return hclwrite.TokensForValue(v)
	case ty.IsObjectType() || ty.IsMapType():
		var attrs []hclwrite.ObjectAttrTokens
		all := v.AsValueMap()
		for _, key := range slices.Sorted(maps.Keys(all)) {
			name := hclwrite.TokensForValue(cty.StringVal(key))
			if hclsyntax.ValidIdentifier(key) {
				name = hclwrite.TokensForIdentifier(key)
			}
			attrs = append(attrs, hclwrite.ObjectAttrTokens{Name: name, Value: valueTokens(all[key])})
		}
		return hclwrite.TokensForObject(attrs)
	case v.CanIterateElements():
		var items []hclwrite.Tokens
		for _, item := range v.Elements() {
			items = append(items, valueTokens(item))
		}
		return hclwrite.TokensForTuple(items)
	}
	return raw(v.Type().FriendlyName())
}
