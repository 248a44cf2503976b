package eval

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
	"github.com/benchgraph/benchgraph/hclspec/internal/syntax"
)

// Reader reads the attributes of one block for one instance. Each mistake is recorded when it is found. An attribute
// that is absent, null or wrong gives the zero value, so that a decoder goes on to the next mistake.
type Reader struct {
	Scope    *Scope
	Block    *Block
	Bad      map[hcl.Expression]bool // expressions with unknown names, which were reported
	Instance string                  // key of the instance, for diagnostics
	Each     cty.Value               // of the instance; its key, if KeyOnly is set; nil: there is none
	UsesEach bool                    // the expressions use each
	KeyOnly  bool                    // the expressions use nothing of each but its key

	ctx    *hcl.EvalContext // without each
	values *[]evaluated     // evaluated attributes, since most are read more than once
}

type evaluated struct {
	attr  *hcl.Attribute
	value cty.Value
	given bool // value is neither null nor unknown in a part
}

// keep keeps the value of an attribute.
func (r Reader) keep(attr *hcl.Attribute, v cty.Value) evaluated {
	e := evaluated{attr, v, v.IsWhollyKnown() && !v.IsNull()}
	*r.values = append(*r.values, e)
	return e
}

// Reader returns a reader of some of a block's expressions.
func (s *Scope) Reader(b *Block, exprs []hcl.Expression, each Each) Reader {
	ctx, bad := s.Context(exprs, each)
	r := Reader{Scope: s, Block: b, ctx: ctx, Bad: bad, values: new([]evaluated)}
	if each != nil {
		used, whole := syntax.EachIn(exprs)
		r.UsesEach, r.KeyOnly = used, !whole
	}
	return r
}

// With returns the reader for the instance of a key, with its value of each. If KeyOnly is set, each may be the key.
func (r Reader) With(key string, each cty.Value) Reader {
	r.Instance, r.Each, r.values = key, each, new([]evaluated)
	return r
}

// within returns the context of the block with an each: a new one, or, if ctx is not nil, that of another instance.
func (r Reader) within(ctx *hcl.EvalContext, each cty.Value) *hcl.EvalContext {
	if ctx == nil {
		ctx = r.ctx.NewChild()
		ctx.Variables = map[string]cty.Value{}
	}
	ctx.Variables[syntax.EachKey] = each
	if each.Type() != cty.String {
		ctx.Variables["each"], ctx.Variables[syntax.EachKey] = each, each.GetAttr("key")
	}
	return ctx
}

// Fail records a mistake; detail is a format of fmt.Sprintf.
func (r Reader) Fail(at hcl.Range, summary, detail string, args ...any) {
	r.Scope.Diags.Error(r.Instance, at, summary, fmt.Sprintf(detail, args...))
}

// At returns the place of an attribute's value, or of the block if there is none.
func (r Reader) At(name string) hcl.Range {
	if attr := r.Block.Attrs[name]; attr != nil {
		return attr.Expr.Range()
	}
	return r.Block.Range
}

// AtItem returns the place of one item of a list, if the file writes the items.
func (r Reader) AtItem(name string, i int) hcl.Range {
	if attr := r.Block.Attrs[name]; attr != nil {
		if items, _ := hcl.ExprList(attr.Expr); i < len(items) {
			return items[i].Range()
		}
	}
	return r.At(name)
}

// Has reports whether the block has the attribute, with any value.
func (r Reader) Has(name string) bool { return r.Block.Attrs[name] != nil }

// Need reports a missing attribute; what completes the sentence "x needs name: …".
func (r Reader) Need(name, what string) {
	if !r.Has(name) && r.Block.Meant(name) {
		return
	}
	if !r.Has(name) {
		r.Fail(r.Block.Range, "Missing "+name, "%s needs %s: %s.", r.Title(), name, what)
	} else if v := r.Evaluate(name); v.IsKnown() && v.IsNull() {
		r.Fail(r.At(name), "Missing "+name, "%s needs %s, and the value is null: %s.", r.Title(), name, what)
	}
}

// Title returns the name of the block for diagnostics.
func (r Reader) Title() string {
	if r.Block.Name == "" {
		return "A " + r.Block.Schema.Kind + " block"
	}
	return fmt.Sprintf("%s %q", r.Block.Schema.Kind, r.Block.Name)
}

// Evaluate returns the attribute's value: null if it is absent, unknown if it has a mistake.
func (r Reader) Evaluate(name string) cty.Value { return r.evaluate(name).value }

func (r Reader) evaluate(name string) evaluated {
	attr := r.Block.Attrs[name]
	if attr == nil {
		return evaluated{value: cty.NullVal(cty.DynamicPseudoType)}
	}
	for _, known := range *r.values {
		if known.attr == attr {
			return known
		}
	}
	ctx := r.ctx
	if r.Bad[attr.Expr] {
		// There may be other mistakes in it.
		r.Scope.Value(attr.Expr, r.within(nil, cty.DynamicVal), r.Instance)
		return r.keep(attr, cty.DynamicVal)
	} else if r.Each != cty.NilVal {
		ctx = r.within(nil, r.Each)
	}
	return r.keep(attr, r.Scope.Value(attr.Expr, ctx, r.Instance))
}

// Value returns the attribute's value; false: it is absent, null, or unknown because of another mistake.
func (r Reader) Value(name string) (cty.Value, bool) {
	e := r.evaluate(name)
	return e.value, e.given
}

// As converts the attribute's value; want describes the expected value in the diagnostic.
func (r Reader) As(name string, ty cty.Type, want string) (cty.Value, bool) {
	v, ok := r.Value(name)
	if !ok {
		return v, false
	}
	converted, err := funcs.Convert(v, ty)
	if err != nil || converted.IsNull() {
		r.Fail(r.At(name), "Wrong type", "%s must be %s, not %s.", name, want, Describe(v))
		return v, false
	}
	if ty == cty.Number && converted.IsKnown() && huge(converted.AsBigFloat()) {
		r.Fail(r.At(name), "Number out of range", "%s has a number of more than 1000 digits.", name)
		return v, false
	}
	return converted, converted.IsKnown()
}

// huge reports whether a number is infinite, or has more than about 1000 digits.
func huge(f *big.Float) bool {
	exponent := f.MantExp(nil)
	return f.IsInf() || exponent > 3322 || exponent < -3322 // binary digits, for 1000 decimal ones
}

// Describe returns the type of a value, or its text, for a diagnostic.
func Describe(v cty.Value) string {
	if v.Type() == cty.String && !v.IsNull() {
		if _, rest, ok := strings.Cut(v.AsString(), funcs.Mark); ok {
			address, _, _ := strings.Cut(rest, funcs.Mark)
			return "a reference to " + address
		}
		return fmt.Sprintf("the text %q", shorten(v.AsString()))
	}
	switch ty := v.Type(); {
	case ty.IsTupleType():
		return "a list"
	case ty.IsObjectType():
		return "an object"
	}
	return v.Type().FriendlyName()
}

func shorten(s string) string {
	if len(s) > 60 {
		return s[:57] + "…"
	}
	return s
}

// Bool reads true or false; false if the attribute is absent.
func (r Reader) Bool(name string) bool {
	v, ok := r.As(name, cty.Bool, "true or false")
	return ok && v.True()
}

// When reads a condition. It holds if the attribute is absent. A null, as from a parameter that a commit does not have,
// does not hold.
func (r Reader) When(name string) bool { return !r.Has(name) || r.Bool(name) }

// Str reads a text without references.
func (r Reader) Str(name string) string {
	v, ok := r.As(name, cty.String, "a text")
	if !ok {
		return ""
	}
	return r.Literal(name, v)
}

// Literal returns the text of a value of the attribute, which must be neither null nor a reference.
func (r Reader) Literal(name string, v cty.Value) string {
	if v.IsNull() {
		r.Fail(r.At(name), "Null value", "%s holds null where a text is expected.", name)
		return ""
	}
	if strings.Contains(v.AsString(), funcs.Mark) {
		r.Fail(r.At(name), "Reference not possible here", "%s must be a plain text; it cannot hold %s.", name,
			Describe(v))
		return ""
	}
	return v.AsString()
}

// Strs reads a list of texts; a single text counts as a list of one.
func (r Reader) Strs(name string) []string {
	var out []string
	for _, v := range r.Elements(name, cty.String, "a list of texts") {
		out = append(out, r.Literal(name, v))
	}
	return out
}

// Elements reads the items of a list and converts them; a single value counts as a list of one.
func (r Reader) Elements(name string, each cty.Type, want string) []cty.Value {
	v, ok := r.Value(name)
	if !ok {
		return nil
	}
	if v.Type().IsPrimitiveType() {
		v = cty.TupleVal([]cty.Value{v})
	}
	list, err := funcs.Convert(v, cty.List(each))
	if err != nil {
		r.Fail(r.At(name), "Wrong type", "%s must be %s, not %s.", name, want, Describe(v))
		return nil
	}
	if !list.IsKnown() {
		return nil
	}
	return list.AsValueSlice()
}

// items returns the values in a list; a single value counts as a list of one.
func items(v cty.Value) []cty.Value {
	if v.Type().IsPrimitiveType() || !v.CanIterateElements() {
		return []cty.Value{v}
	}
	var all []cty.Value
	for _, item := range v.Elements() {
		all = append(all, item)
	}
	return all
}

// Distinct reports an item that a list names twice.
func (r Reader) Distinct(name string) {
	attr := r.Block.Attrs[name]
	v, ok := r.Value(name)
	if !ok || attr == nil {
		return
	}
	list := items(v)
	written, _ := hcl.ExprList(attr.Expr)
	for i, expr := range written[:min(len(written), len(list))] {
		none := list[i].RawEquals(cty.EmptyObjectVal) // blocks without instances are alike
		if !none && slices.ContainsFunc(list[:i], list[i].RawEquals) {
			r.Fail(expr.Range(), "Named twice", "%s has this item already. Leave it out, or name another one.",
				name)
			return
		}
	}
}

// Map reads a map and converts its values; want and one describe the map and one of its values in diagnostics.
func (r Reader) Map(name string, each cty.Type, want, one string) map[string]cty.Value {
	v, ok := r.Value(name)
	if !ok {
		return nil
	}
	if converted, err := funcs.Convert(v, cty.Map(each)); err == nil {
		return converted.AsValueMap()
	}
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		r.Fail(r.At(name), "Wrong type", "%s must be %s, not %s.", name, want, Describe(v))
		return nil
	}
	var wrong []string
	all := v.AsValueMap()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if _, err := funcs.Convert(all[key], each); err != nil {
			wrong = append(wrong, fmt.Sprintf("%q is %s%s", key, Describe(all[key]), instead(all[key])))
		}
	}
	r.Fail(r.At(name), "Wrong type", "%s must be %s: %s, and not %s.", name, want, strings.Join(wrong, ", "), one)
	return nil
}

// Choice reads a text that must be in a list.
func (r Reader) Choice(name, standard string, allowed ...string) string {
	if _, ok := r.Value(name); !ok {
		return standard
	}
	given := r.Str(name)
	r.OneOf(name, r.At(name), given, allowed)
	return given
}

// OneOf reports a text that is not among the allowed ones.
func (r Reader) OneOf(name string, at hcl.Range, given string, allowed []string) {
	if !slices.Contains(allowed, given) {
		r.Fail(at, "Unknown "+name, "%s must be one of %s, not %q.%s", name, strings.Join(allowed, ", "), given,
			diag.Suggest(given, allowed))
	}
}

// EnvName reports a text that cannot be the name of an environment variable.
func (r Reader) EnvName(attr, name string) {
	switch {
	case !variableName().MatchString(name):
		r.Fail(r.At(attr), "Invalid name", "%q cannot be the name of an environment variable.", name)
	case slices.Contains(Granted, name):
		r.Fail(r.At(attr), "Variable of benchgraph", "benchgraph gives %s to commands. Leave it out here.", name)
	}
}

// Granted lists the variables that benchgraph gives to commands, so that no block can set them.
var Granted = []string{"OUT", "SRC", "SITE", "PORT", "CUDA_VISIBLE_DEVICES", "BENCHGRAPH_PROC", "BENCHGRAPH_SEED"}
