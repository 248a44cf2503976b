package eval

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
)

// metered is an expression whose evaluation is counted. It stands in parentheses that nobody wrote, which are all that
// HCL lets others add to its tree.
type metered struct {
	hclsyntax.ParenthesesExpr
	scope *Scope
	count func(m *funcs.Meter, v cty.Value)
}

// UnwrapExpression leads HCL's static analysis to what was written.
func (e *metered) UnwrapExpression() hcl.Expression { return e.Expression }

// failure is the work that an iteration with a mistake counts for: HCL goes on with the next one, and keeps every mistake.
const failure = 20_000

// Value evaluates the expression, and panics with funcs.Stop when that is too much.
func (e *metered) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	defer e.blame()
	v, diags := e.Expression.Value(ctx)
	if diags.HasErrors() {
		e.scope.Meter.Work(failure)
	} else {
		e.count(e.scope.Meter, v)
	}
	return v, diags
}

// divisor is what something is divided by. By 0, HCL computes infinity; here it is a mistake, which try and can catch and
// which does not matter in the result of a condition that is not chosen.
type divisor struct{ hclsyntax.ParenthesesExpr }

// UnwrapExpression leads HCL's static analysis to what was written.
func (e *divisor) UnwrapExpression() hcl.Expression { return e.Expression }

func (e *divisor) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	v, diags := e.Expression.Value(ctx)
	n, err := convert.Convert(v, cty.Number)
	if diags.HasErrors() || err != nil || !n.IsKnown() || n.IsNull() || n.AsBigFloat().Sign() != 0 {
		return v, diags
	}
	return cty.UnknownVal(cty.Number), append(diags, &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Division by zero", Detail: "The divisor here is 0.", Subject: &e.SrcRange, Expression: e, EvalContext: ctx,
	})
}

// blame remembers the innermost expression in which there was too much.
func (e *metered) blame() {
	if e.scope.Meter.Why() != "" && e.scope.place == nil {
		e.scope.place = &e.SrcRange
	}
}

// meterBlock prepares all that a block says for an evaluation that is counted.
func (s *Scope) meterBlock(b *Block) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, attr := range b.Attrs {
		if b.Schema.Kind == "variable" && attr.Name == "type" {
			diags = append(diags, s.meterType(attr)...)
			continue
		}
		diags = append(diags, s.meterAttribute(attr)...)
	}
	for _, nested := range b.blocks {
		diags = append(diags, s.meterBlock(nested)...)
	}
	return diags
}

func (s *Scope) meterAttribute(attr *hcl.Attribute) (diags hcl.Diagnostics) {
	expr, ok := attr.Expr.(hclsyntax.Expression)
	if !ok {
		expr, diags = native(attr.Expr)
	}
	attr.Expr = s.metering(expr)
	return diags
}

// meterType is meterAttribute for a type, which JSON holds as a string with an expression.
func (s *Scope) meterType(attr *hcl.Attribute) hcl.Diagnostics {
	if _, ok := attr.Expr.(hclsyntax.Expression); ok {
		return s.meterAttribute(attr)
	}
	v, _ := attr.Expr.Value(nil) // without a context a string of JSON is what is written
	if v.Type() != cty.String || v.IsNull() {
		return s.meterAttribute(attr)
	}
	at := attr.Expr.Range()
	tokens, _ := hclsyntax.LexExpression([]byte(v.AsString()), at.Filename, at.Start)
	diags := guardTokens(tokens)
	var expr hclsyntax.Expression
	if diags == nil {
		expr, diags = hclsyntax.ParseExpression([]byte(v.AsString()), at.Filename, at.Start)
	}
	if diags.HasErrors() {
		expr = &hclsyntax.LiteralValueExpr{Val: cty.DynamicVal, SrcRange: at}
	}
	attr.Expr = s.metering(expr)
	return diags
}

// metering puts counters into the tree of an expression: where elements, texts and numbers are made, and where something
// is done again and again.
func (s *Scope) metering(expr hclsyntax.Expression) hclsyntax.Expression {
	switch e := expr.(type) {
	case *hclsyntax.LiteralValueExpr:
		if funcs.Huge(e.Val) {
			return s.parenthesized(e, (*funcs.Meter).Number)
		}
	case *hclsyntax.ParenthesesExpr:
		e.Expression = s.metering(e.Expression)
	case *hclsyntax.RelativeTraversalExpr:
		e.Source = s.metering(e.Source)
	case *hclsyntax.IndexExpr:
		e.Collection, e.Key = s.metering(e.Collection), s.metering(e.Key)
	case *hclsyntax.UnaryOpExpr:
		e.Val = s.metering(e.Val)
	case *hclsyntax.BinaryOpExpr:
		if e.Op == hclsyntax.OpEqual || e.Op == hclsyntax.OpNotEqual {
			e.LHS, e.RHS = s.counted(e.LHS, compared), s.counted(e.RHS, compared)
			break
		}
		e.LHS, e.RHS = s.metering(e.LHS), s.metering(e.RHS)
		if e.Op == hclsyntax.OpDivide || e.Op == hclsyntax.OpModulo {
			e.RHS = &divisor{hclsyntax.ParenthesesExpr{Expression: e.RHS, SrcRange: e.RHS.Range()}}
		}
		return s.parenthesized(e, (*funcs.Meter).Number)
	case *hclsyntax.ConditionalExpr:
		e.Condition = s.metering(e.Condition)
		e.TrueResult, e.FalseResult = s.counted(e.TrueResult, unified), s.counted(e.FalseResult, unified)
	case *hclsyntax.FunctionCallExpr:
		for i := range e.Args {
			e.Args[i] = s.metering(e.Args[i])
		}
		return s.parenthesized(e, (*funcs.Meter).Number) // functions count what they make; this says where
	case *hclsyntax.TupleConsExpr:
		for i := range e.Exprs {
			e.Exprs[i] = s.metering(e.Exprs[i])
		}
		return s.parenthesized(e, (*funcs.Meter).Made)
	case *hclsyntax.ObjectConsExpr:
		for i := range e.Items {
			e.Items[i].KeyExpr, e.Items[i].ValueExpr = s.metering(e.Items[i].KeyExpr), s.metering(e.Items[i].ValueExpr)
		}
		return s.parenthesized(e, (*funcs.Meter).Made)
	case *jsonObject:
		s.metering(e.ObjectConsExpr)
		return s.parenthesized(e, (*funcs.Meter).Made)
	case *hclsyntax.ObjectConsKeyExpr:
		e.Wrapped = s.metering(e.Wrapped)
	case *hclsyntax.ForExpr:
		e.CollExpr, e.ValExpr = s.metering(e.CollExpr), s.counted(e.ValExpr, iteration)
		if e.KeyExpr != nil {
			e.KeyExpr = s.counted(s.counted(e.KeyExpr, iteration), (*funcs.Meter).Written)
		}
		if e.CondExpr != nil {
			e.CondExpr = s.counted(e.CondExpr, iteration)
		}
		return s.parenthesized(e, (*funcs.Meter).Made)
	case *hclsyntax.SplatExpr:
		e.Source, e.Each = s.metering(e.Source), s.counted(e.Each, iteration)
		return s.parenthesized(e, (*funcs.Meter).Made)
	case *hclsyntax.TemplateExpr:
		written := 0
		for i, part := range e.Parts {
			if literal, ok := part.(*hclsyntax.LiteralValueExpr); ok && literal.Val.Type() == cty.String {
				written += len(literal.Val.AsString())
			} else {
				e.Parts[i] = s.counted(part, text)
			}
		}
		if !e.IsStringLiteral() {
			return s.parenthesized(e, func(m *funcs.Meter, _ cty.Value) { m.Bytes(written) })
		}
	case *hclsyntax.TemplateWrapExpr:
		e.Wrapped = s.metering(e.Wrapped)
	case *hclsyntax.TemplateJoinExpr:
		e.Tuple = s.metering(e.Tuple)
		if loop := unwrapped(e.Tuple); loop != nil {
			loop.ValExpr = s.counted(loop.ValExpr, text)
		}
	}
	return expr
}

// unwrapped is the loop of a template's %{ for }.
func unwrapped(expr hclsyntax.Expression) *hclsyntax.ForExpr {
	if m, ok := expr.(*metered); ok {
		expr = m.Expression
	}
	loop, _ := expr.(*hclsyntax.ForExpr)
	return loop
}

// counted is the expression, counted by the given rule beside what is counted in it.
func (s *Scope) counted(expr hclsyntax.Expression, count func(*funcs.Meter, cty.Value)) hclsyntax.Expression {
	return s.parenthesized(s.metering(expr), count)
}

func (s *Scope) parenthesized(expr hclsyntax.Expression, count func(*funcs.Meter, cty.Value)) hclsyntax.Expression {
	return &metered{hclsyntax.ParenthesesExpr{Expression: expr, SrcRange: expr.Range()}, s, count}
}

// iteration counts one round of a loop.
func iteration(m *funcs.Meter, _ cty.Value) { m.Work(60) }

// text counts a piece of a template.
func text(m *funcs.Meter, v cty.Value) {
	m.Work(8)
	m.Number(v)
	m.Written(v)
	if v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
		m.Bytes(len(v.AsString()))
	}
}

// compared counts a value that is compared with another, part by part and type by type.
func compared(m *funcs.Meter, v cty.Value) {
	for range 4 {
		m.Walk(v)
	}
	m.Written(v)
}

// unified counts what HCL does with the two results of a condition, both of which it evaluates: the types of all elements
// are compared with each other.
func unified(m *funcs.Meter, v cty.Value) {
	m.Walk(v)
	m.Written(v)
	if ty := v.Type(); (ty.IsTupleType() || ty.IsObjectType()) && v.IsKnown() && !v.IsNull() {
		m.Work(v.LengthInt() / 2 * v.LengthInt())
	}
}
