package eval

import (
	"github.com/benchgraph/benchgraph/hclspec/internal/syntax"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// divisor is the right side of a division. HCL computes infinity if it is 0. Here that is a mistake. try and can catch
// it, and it does not matter in the branch of a conditional that is not chosen.
type divisor struct{ hclsyntax.ParenthesesExpr }

// UnwrapExpression leads HCL's static analysis to the source text's own expression.
func (e *divisor) UnwrapExpression() hcl.Expression { return e.Expression }

// Value evaluates the divisor.
func (e *divisor) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	v, diags := e.Expression.Value(ctx)
	n, err := convert.Convert(v, cty.Number)
	if diags.HasErrors() || err != nil || !n.IsKnown() || n.IsNull() || n.AsBigFloat().Sign() != 0 {
		return v, diags
	}
	return cty.UnknownVal(cty.Number), append(diags, &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Division by zero", Detail: "The divisor here is 0.", Subject: &e.SrcRange,
		Expression: e, EvalContext: ctx,
	})
}

// iterated is an expression that a loop evaluates for each element. It ends the goroutine of a stopped evaluation.
type iterated struct {
	hclsyntax.ParenthesesExpr
	scope *Scope
}

// UnwrapExpression leads HCL's static analysis to the source text's own expression.
func (e *iterated) UnwrapExpression() hcl.Expression { return e.Expression }

// Value evaluates the expression.
func (e *iterated) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	e.scope.checkpoint()
	return e.Expression.Value(ctx)
}

// adapt changes an expression for this language: divisions are checked, and loops can be stopped. Parentheses are the
// only nodes that other packages can add to HCL's tree.
func (s *Scope) adapt(expr hclsyntax.Expression) hclsyntax.Expression {
	syntax.NameKeys(expr)
	// The callback returns no diagnostics, so neither does VisitAll.
	_ = hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		switch e := node.(type) {
		case *hclsyntax.BinaryOpExpr:
			if e.Op == hclsyntax.OpDivide || e.Op == hclsyntax.OpModulo {
				e.RHS = &divisor{hclsyntax.ParenthesesExpr{Expression: e.RHS, SrcRange: e.RHS.Range()}}
			}
		case *hclsyntax.ForExpr:
			e.ValExpr = &iterated{hclsyntax.ParenthesesExpr{Expression: e.ValExpr, SrcRange: e.ValExpr.Range()}, s}
			if e.CondExpr != nil {
				e.CondExpr = &iterated{hclsyntax.ParenthesesExpr{Expression: e.CondExpr, SrcRange: e.CondExpr.Range()},
					s}
			}
		case *hclsyntax.SplatExpr:
			e.Each = &iterated{hclsyntax.ParenthesesExpr{Expression: e.Each, SrcRange: e.Each.Range()}, s}
		}
		return nil
	})
	return expr
}

// adaptBlock adapts every attribute of a block.
func (s *Scope) adaptBlock(b *Block) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, attr := range b.Attrs {
		if b.Schema.Kind == "variable" && attr.Name == "type" {
			diags = append(diags, s.adaptType(attr)...)
			continue
		}
		diags = append(diags, s.adaptAttribute(attr)...)
	}
	for _, nested := range b.blocks {
		diags = append(diags, s.adaptBlock(nested)...)
	}
	return diags
}

func (s *Scope) adaptAttribute(attr *hcl.Attribute) (diags hcl.Diagnostics) {
	expr, ok := attr.Expr.(hclsyntax.Expression)
	if !ok {
		expr, diags = syntax.Native(attr.Expr)
	}
	attr.Expr = s.adapt(expr)
	return diags
}

// adaptType is adaptAttribute for a type, which is a string with an expression in JSON.
func (s *Scope) adaptType(attr *hcl.Attribute) hcl.Diagnostics {
	if _, ok := attr.Expr.(hclsyntax.Expression); ok {
		return s.adaptAttribute(attr)
	}
	v, _ := attr.Expr.Value(nil) // without a context a string of JSON is not yet a template
	if v.Type() != cty.String || v.IsNull() {
		return s.adaptAttribute(attr)
	}
	at := attr.Expr.Range()
	expr, diags := syntax.Embedded(v.AsString(), at)
	if expr == nil {
		expr = &hclsyntax.LiteralValueExpr{Val: cty.DynamicVal, SrcRange: at}
	}
	attr.Expr = s.adapt(expr)
	return diags
}

// Filter returns the collection of a for expression, and the range of its condition, if the condition depends on the
// elements only: { for k, c in candidates : k => c if c.title == "x" }. Else, root is empty.
func Filter(e hcl.Expression) (root string, condition hcl.Range) {
	loop, ok := hcl.UnwrapExpressionUntil(e, func(e hcl.Expression) bool {
		_, loop := e.(*hclsyntax.ForExpr)
		return loop
	}).(*hclsyntax.ForExpr)
	if !ok || loop.CondExpr == nil {
		return "", condition
	}
	of, diags := hcl.AbsTraversalForExpr(loop.CollExpr)
	if diags.HasErrors() || len(of) != 1 {
		return "", condition
	}
	for _, use := range loop.CondExpr.Variables() {
		if name := use.RootName(); name != loop.KeyVar && name != loop.ValVar {
			return "", condition
		}
	}
	return of.RootName(), loop.CondExpr.Range()
}
