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

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
)

// Eval evaluates one expression as if it stood in the project's files, and writes the value in HCL; a reference stands as
// its address. The diagnostics are those of the expression and of what it needs. A project without a root file is empty.
func Eval(o Options, expr string) (string, map[string]*hcl.File, hcl.Diagnostics) {
	o.Strict = true
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
	l.settle()
	var value strings.Builder
	whole := l.scope.Metered(parsed.Range(), func() { write(&value, l.scope.Meter, v, "\n") })
	diags = l.scope.Diags.All(append(l.names, name))
	if diags.HasErrors() && !(whole && v.IsWhollyKnown()) {
		return "", l.files, diags
	}
	return value.String(), l.files, diags
}

// write writes a value as hclwrite would lay it out, but without a token for each of its words. newline is the end of a
// line and the indentation of the next.
func write(out *strings.Builder, meter *funcs.Meter, v cty.Value, newline string) {
	raw := func(text string) {
		meter.Bytes(len(text))
		out.WriteString(text)
	}
	switch ty := v.Type(); {
	case !v.IsKnown():
		raw("(not known)")
	case v.IsNull():
		raw("null")
	case ty == cty.String:
		text, _ := splitTokens(v.AsString())
		if a, ok := text.single(); ok {
			raw(a.String())
		} else {
			raw(literal(cty.StringVal(text.String())))
		}
	case ty.IsPrimitiveType():
		meter.Written(v)
		raw(literal(v))
	case ty.IsObjectType() || ty.IsMapType():
		writeObject(out, meter, v.AsValueMap(), newline)
	case v.CanIterateElements():
		raw("[")
		separator := ""
		for _, item := range v.Elements() {
			raw(separator)
			write(out, meter, item, newline)
			separator = ", "
		}
		raw("]")
	default:
		raw(v.Type().FriendlyName())
	}
}

// writeObject writes a line for each attribute. The signs of neighbours that take one line each are aligned.
func writeObject(out *strings.Builder, meter *funcs.Meter, all map[string]cty.Value, newline string) {
	raw := func(text string) {
		meter.Bytes(len(text))
		out.WriteString(text)
	}
	if len(all) == 0 {
		raw("{}")
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
			raw(newline + "  " + l.name + strings.Repeat(" ", width-utf8.RuneCountInString(l.name)) + " = " + l.value)
		}
		neighbours = nil
	}
	raw("{")
	for _, key := range slices.Sorted(maps.Keys(all)) {
		name := key
		if !hclsyntax.ValidIdentifier(key) {
			name = literal(cty.StringVal(key))
		}
		var value strings.Builder
		write(&value, meter, all[key], newline+"  ")
		if strings.Contains(value.String(), "\n") {
			align()
			raw(newline + "  " + name + " = " + value.String())
		} else {
			neighbours = append(neighbours, line{name, value.String()})
		}
	}
	align()
	raw(newline + "}")
}

func literal(v cty.Value) string { return string(hclwrite.TokensForValue(v).Bytes()) }
