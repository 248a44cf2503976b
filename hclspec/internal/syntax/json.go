package syntax

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Native returns a JSON expression as a tree of the native syntax. So one evaluation serves both, and a template is
// parsed once instead of at each use of its value.
func Native(expr hcl.Expression) (hclsyntax.Expression, hcl.Diagnostics) {
	at := expr.Range()
	if pairs, diags := hcl.ExprMap(expr); !diags.HasErrors() {
		object := &jsonObject{&hclsyntax.ObjectConsExpr{SrcRange: at, OpenRange: at}}
		var all hcl.Diagnostics
		for _, pair := range pairs {
			key, diags := Native(pair.Key)
			value, more := Native(pair.Value)
			all = append(append(all, diags...), more...)
			object.Items = append(object.Items, hclsyntax.ObjectConsItem{KeyExpr: key, ValueExpr: value})
		}
		return object, all
	}
	if items, diags := hcl.ExprList(expr); !diags.HasErrors() {
		tuple := &hclsyntax.TupleConsExpr{SrcRange: at, OpenRange: at}
		var all hcl.Diagnostics
		for _, item := range items {
			e, diags := Native(item)
			all = append(all, diags...)
			tuple.Exprs = append(tuple.Exprs, e)
		}
		return tuple, all
	}
	// Without a context a string is not yet a template.
	v, _ := expr.Value(nil)
	if v.Type() != cty.String || v.IsNull() {
		return &hclsyntax.LiteralValueExpr{Val: v, SrcRange: at}, nil
	}
	start := at.Start
	start.Byte++ // the quote
	start.Column++
	template, diags := hclsyntax.ParseTemplate([]byte(v.AsString()), at.Filename, start)
	if diags.HasErrors() {
		return &hclsyntax.LiteralValueExpr{Val: cty.DynamicVal, SrcRange: at}, diags
	}
	return template, diags
}

// jsonObject is an object of JSON, in which a repeated name is a mistake.
type jsonObject struct{ *hclsyntax.ObjectConsExpr }

// Value evaluates the object.
func (e *jsonObject) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	seen := make(map[string]hcl.Range, len(e.Items))
	for _, item := range e.Items {
		key, diags := item.KeyExpr.Value(ctx)
		if diags.HasErrors() || !key.IsKnown() || key.IsNull() || key.Type() != cty.String {
			continue // reported below
		}
		at := item.KeyExpr.Range()
		if first, ok := seen[key.AsString()]; ok {
			return cty.DynamicVal, hcl.Diagnostics{{
				Severity: hcl.DiagError, Summary: "Duplicate object attribute",
				Detail:  fmt.Sprintf("An attribute named %q was already defined at %s.", key.AsString(), first),
				Subject: &at,
			}}
		}
		seen[key.AsString()] = at
	}
	return e.ObjectConsExpr.Value(ctx)
}
