// Package variable defines var.* and local.*: values to which a file or its user gives names.
package variable

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
)

// Schema returns the schema of a variable block.
func Schema() *eval.Schema {
	return &eval.Schema{
		Kind: "variable", Label: true, Free: []string{"type", "default", "description"},
		Blocks: []*eval.Schema{{Kind: "validation", Many: true, Free: []string{"condition", "error_message"}}},
	}
}

// Given holds the values that the user set, the strongest source first.
type Given struct {
	Flags map[string]string             // -var
	Files []hcl.Attributes              // variable files; a later one is stronger
	Env   map[string]string             // BENCHGRAPH_VAR_; names without a variable are ignored
	Keep  func(name string, src []byte) // keeps the text of a value, so that a diagnostic can show it
}

// Define defines var.* from the variable blocks and the given values. All are evaluated at once.
func Define(s *eval.Scope, blocks []*eval.Block, given Given) {
	values := map[string]cty.Value{}
	declared := map[string]*eval.Block{}
	for _, b := range blocks {
		if first, ok := declared[b.Name]; ok {
			s.Diags.Error("", b.Label, "Duplicate variable", fmt.Sprintf("%q is declared already at %s.", b.Name,
				first.Range))
			continue
		}
		declared[b.Name] = b
		values[b.Name] = variable(s, b, given)
	}
	known := slices.Collect(maps.Keys(declared))
	for _, name := range slices.Sorted(maps.Keys(given.Flags)) {
		if declared[name] == nil && !s.Partial {
			s.Diags.Error("", hcl.Range{}, "Unknown variable",
				fmt.Sprintf("-var sets %q, which no variable block declares.%s", name, diag.Suggest(name, known)))
		}
	}
	for _, file := range given.Files {
		for name, attr := range file {
			if declared[name] == nil && !s.Partial {
				s.Diags.Error("", attr.NameRange, "Unknown variable",
					fmt.Sprintf("No variable block declares %q.%s", name, diag.Suggest(name, known)))
			}
		}
	}
	s.Roots["var"] = eval.Root{
		What:  "variable",
		Names: func() []string { return known },
		Get:   func(name string) (cty.Value, bool) { v, ok := values[name]; return v, ok },
		All:   func() cty.Value { return cty.ObjectVal(values) },
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		for _, rule := range declared[name].Blocks("validation") {
			validate(s, name, rule, values[name])
		}
	}
}

// variable returns the value of one variable, converted to its type.
func variable(s *eval.Scope, b *eval.Block, given Given) cty.Value {
	want, defaults := cty.DynamicPseudoType, (*typeexpr.Defaults)(nil)
	if attr := b.Attrs["type"]; attr != nil {
		ty, d, diags := typeexpr.TypeConstraintWithDefaults(attr.Expr)
		s.Diags.Add("", diags...)
		if diags.HasErrors() {
			return cty.DynamicVal
		}
		want, defaults = ty, d
	}
	v, at, ok := strongest(s, b, want, given)
	if !ok {
		s.Diags.Error("", b.Range, "Variable without a value", fmt.Sprintf(
			"Set it with -var %s=VALUE or BENCHGRAPH_VAR_%s, or give it a default.", b.Name, b.Name))
		return cty.DynamicVal
	}
	if defaults != nil && !v.IsNull() && v.IsKnown() {
		v = defaults.Apply(v)
	}
	converted, err := funcs.Convert(v, want)
	if err != nil {
		s.Diags.Error("", at, "Wrong type", fmt.Sprintf("The value of variable %q must be %s: %s.", b.Name,
			want.FriendlyNameForConstraint(), err))
		return cty.DynamicVal
	}
	return converted
}

// strongest returns the strongest value of a variable, and its place.
func strongest(s *eval.Scope, b *eval.Block, want cty.Type, given Given) (cty.Value, hcl.Range, bool) {
	if text, ok := given.Flags[b.Name]; ok {
		return parse(s, "-var "+b.Name, text, want, given)
	}
	for _, file := range slices.Backward(given.Files) {
		if attr, ok := file[b.Name]; ok {
			return s.Value(attr.Expr, &hcl.EvalContext{Functions: s.Funcs}, ""), attr.Expr.Range(), true
		}
	}
	if text, ok := given.Env[b.Name]; ok {
		return parse(s, "BENCHGRAPH_VAR_"+b.Name, text, want, given)
	}
	attr, ok := b.Attrs["default"]
	if !ok {
		return cty.NilVal, hcl.Range{}, false
	}
	if vars := attr.Expr.Variables(); len(vars) > 0 {
		s.Diags.Error("", vars[0].SourceRange(), "Default is not a constant",
			"The default of a variable cannot refer to anything. Use a local value.")
		return cty.DynamicVal, attr.Expr.Range(), true
	}
	return s.Value(attr.Expr, &hcl.EvalContext{Functions: s.Funcs}, ""), attr.Expr.Range(), true
}

// parse reads a value from the command line or the environment: as text if the variable is primitive or has no type,
// else as an expression.
func parse(s *eval.Scope, name, text string, want cty.Type, given Given) (cty.Value, hcl.Range, bool) {
	filename, src := "<"+name+">", []byte(text)
	given.Keep(filename, src)
	at := hcl.Range{Filename: filename, Start: hcl.InitialPos, End: hcl.InitialPos}
	for _, r := range text {
		if r == 0 {
			s.Diags.Error("", at, "NUL character", "A value cannot hold the character U+0000.")
			return cty.DynamicVal, at, true
		}
	}
	if want == cty.DynamicPseudoType || want.IsPrimitiveType() {
		return cty.StringVal(text), at, true
	}
	expr, diags := s.ParseExpression(src, filename)
	s.Diags.Add("", diags...)
	if diags.HasErrors() {
		return cty.DynamicVal, at, true
	}
	return s.Value(expr, &hcl.EvalContext{}, ""), at, true
}

// validate checks one condition of a variable.
func validate(s *eval.Scope, name string, rule *eval.Block, value cty.Value) {
	condition, message := rule.Attrs["condition"], rule.Attrs["error_message"]
	if condition == nil || message == nil {
		s.Diags.Error("", rule.Range, "Incomplete validation", "A validation block needs condition and error_message.")
		return
	}
	holds := s.Static(condition.Expr)
	text := s.Static(message.Expr)
	if !value.IsWhollyKnown() || !holds.IsKnown() || !text.IsKnown() {
		return
	}
	verdict, err := convert.Convert(holds, cty.Bool)
	if err != nil || verdict.IsNull() {
		s.Diags.Error("", condition.Expr.Range(), "Wrong type", "The condition of a validation must be true or false.")
		return
	}
	explanation, err := convert.Convert(text, cty.String)
	if err != nil || explanation.IsNull() {
		s.Diags.Error("", message.Expr.Range(), "Wrong type", "The error_message of a validation must be a text.")
		return
	}
	if verdict.False() {
		s.Diags.Error("", condition.Expr.Range(), "Invalid value for variable",
			fmt.Sprintf("The value of variable %q is not allowed: %s", name, explanation.AsString()))
	}
}
