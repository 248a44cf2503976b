package hclspec

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

// Eval evaluates one expression as if it stood in the project's files, and writes the value in HCL, with the address
// for each reference. The diagnostics are those of the expression and of the parts of the project that it needs. A
// project without a root file is empty.
func Eval(o Options, expr string) (string, map[string]*hcl.File, hcl.Diagnostics) {
	return evaluate(o, expr, eval.StandardBounds())
}

func evaluate(o Options, expr string, bounds eval.Bounds) (string, map[string]*hcl.File, hcl.Diagnostics) {
	o.Strict = true
	l, err := newLoader(o)
	if err != nil {
		return "", nil, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "No project", Detail: err.Error() + "."}}
	}
	var value string
	var diags hcl.Diagnostics
	stopped := l.scope.Watch(bounds, func() {
		defer l.dir.Close()
		value, diags = l.evaluate(expr)
	})
	if stopped != nil {
		return "", l.sources.all(), hcl.Diagnostics{stopped}
	}
	return value, l.sources.all(), diags
}

// evaluate reads the project and evaluates an expression; the value is empty if a mistake makes it unknown.
func (l *loader) evaluate(expr string) (string, hcl.Diagnostics) {
	l.read()
	if len(l.names) == 0 && l.options.File == "" {
		l.scope.Diags = &diag.Diagnostics{}
	}
	l.declare()
	const name = "<expression>"
	l.sources.add(name, &hcl.File{Bytes: []byte(expr)})
	parsed, diags := l.scope.ParseExpression([]byte(expr), name)
	l.scope.Diags.Add("", diags...)
	if diags.HasErrors() {
		return "", diags
	}
	v := l.scope.Static(parsed)
	l.settle()
	diags = l.scope.Diags.All(append(l.names, name))
	if diags.HasErrors() && !v.IsWhollyKnown() {
		return "", diags
	}
	var value strings.Builder
	write(&value, v, "\n")
	return value.String(), diags
}

// write writes a value in the layout of hclwrite, but without a token for each of its words. newline is the end of a
// line and the indentation of the next.
func write(out *strings.Builder, v cty.Value, newline string) {
	switch ty := v.Type(); {
	case !v.IsKnown():
		out.WriteString("(not known)")
	case v.IsNull():
		out.WriteString("null")
	case ty == cty.String:
		if a, ok := onlyToken(v.AsString()); ok {
			out.WriteString(a.String())
		} else {
			text, _ := splitTokens(v.AsString())
			out.WriteString(literal(cty.StringVal(text.String())))
		}
	case ty.IsPrimitiveType():
		out.WriteString(literal(v))
	case ty.IsObjectType() || ty.IsMapType():
		writeObject(out, v.AsValueMap(), newline)
	case v.CanIterateElements():
		out.WriteString("[")
		separator := ""
		for _, item := range v.Elements() {
			out.WriteString(separator)
			write(out, item, newline)
			separator = ", "
		}
		out.WriteString("]")
	default:
		out.WriteString(v.Type().FriendlyName())
	}
}

// writeObject writes a line for each attribute. The equals signs of neighbours that take one line each are aligned.
func writeObject(out *strings.Builder, all map[string]cty.Value, newline string) {
	if len(all) == 0 {
		out.WriteString("{}")
		return
	}
	type line struct{ name, value string }
	var neighbours []line
	align := func() {
		width := 0
		for _, l := range neighbours {
			width = max(width, utf8.RuneCountInString(l.name))
		}
		for _, l := range neighbours {
			out.WriteString(newline + "  " + l.name + strings.Repeat(" ", width-utf8.RuneCountInString(l.name)) +
				" = " + l.value)
		}
		neighbours = nil
	}
	out.WriteString("{")
	for _, key := range slices.Sorted(maps.Keys(all)) {
		name := key
		if !hclsyntax.ValidIdentifier(key) {
			name = literal(cty.StringVal(key))
		}
		var value strings.Builder
		write(&value, all[key], newline+"  ")
		if strings.Contains(value.String(), "\n") {
			align()
			out.WriteString(newline + "  " + name + " = " + value.String())
		} else {
			neighbours = append(neighbours, line{name, value.String()})
		}
	}
	align()
	out.WriteString(newline + "}")
}

func literal(v cty.Value) string { return string(hclwrite.TokensForValue(v).Bytes()) }
