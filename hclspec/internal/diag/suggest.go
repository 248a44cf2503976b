package diag

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
	"github.com/benchgraph/benchgraph/internal/nearest"
)

// Suggest returns a sentence that names the candidate nearest to a misspelt name, with a leading space; empty: no
// candidate is near.
func Suggest(given string, candidates []string) string {
	if best := nearest.Name(given, candidates); best != "" {
		return fmt.Sprintf(" Did you mean %q?", best)
	}
	return ""
}

// maxChoices is the largest number of names that are listed. It is enough for the attributes of every block.
const maxChoices = 24

// Choices returns a sentence that suggests the nearest candidate, or lists candidates if none is near.
func Choices(given string, candidates []string) string {
	if s := Suggest(given, candidates); s != "" {
		return s
	}
	sorted := slices.Sorted(slices.Values(candidates))
	switch {
	case len(sorted) == 0:
		return ""
	case len(sorted) > maxChoices:
		return fmt.Sprintf(" There are %d, among them %s.", len(sorted), strings.Join(sorted[:5], ", "))
	}
	return fmt.Sprintf(" There is: %s.", strings.Join(sorted, ", "))
}

// improve replaces HCL's text about a missing attribute or key by one that names the existing ones. If a mistake left
// out the missing one, the text names that mistake, and improve returns it.
func (c *Diagnostics) improve(d *hcl.Diagnostic) (mistake string) {
	if kind, ok := strings.CutPrefix(d.Summary, "Missing name for "); ok {
		d.Detail = fmt.Sprintf("A %s block has a name: %[1]s \"NAME\" { … }.", kind)
	}
	if d.Summary == "Invalid escape sequence" {
		d.Detail += ` A text in quotes needs two backslashes for one, as in "\\d+"; in a heredoc (<<EOT) one is enough.`
	}
	if d.Expression == nil || d.EvalContext == nil {
		return ""
	}
	switch d.Summary {
	case "Invalid template interpolation value":
		if v, diags := d.Expression.Value(d.EvalContext); !diags.HasErrors() && v.IsKnown() && !v.IsNull() &&
			v.Type().IsObjectType() {
			d.Detail = "A text cannot hold a whole object. Choose one of its parts: by name, or by key, as in " +
				"[each.key]."
		} else if !diags.HasErrors() && v.IsNull() {
			d.Detail = "The value is null, and a text cannot hold null: a parameter that a commit does not have, " +
				"perhaps. " +
				"coalesce(VALUE, \"DEFAULT\") gives a default."
		}
	case "Unsupported attribute", "Invalid index":
		if address := indexed(d.Expression, d.EvalContext); address != "" {
			d.Detail = fmt.Sprintf("%s has no for_each, so there is one, without a key: write %s.", address, address)
			return ""
		}
		object, name, ok := missing(d.Expression, d.EvalContext)
		if e, scoped := d.Expression.(*hclsyntax.ScopeTraversalExpr); ok && scoped &&
			e.Traversal.RootName() == "each" && lacks(object, "variant") && !lacks(object, "value") {
			d.Detail = fmt.Sprintf("each has no %q: each.commit, each.variant, each.rev, each.patch and each.source "+
				"are there only where the "+
				"for_each key names a candidate, as with for_each = candidates.", name)
		} else if commit, _, _ := strings.Cut(name, "/"); ok && cmp.Or(c.rows[name], c.rows[commit]) != "" {
			mistake = cmp.Or(c.rows[name], c.rows[commit])
			d.Detail = fmt.Sprintf("%q is left out until its own mistake is corrected. %s", name, mistake)
		} else if ok {
			d.Detail = fmt.Sprintf("There is no %q here.%s", name, Choices(name, names(object)))
		}
	}
	return mistake
}

// indexed returns the address of a node without instances that an expression indexes; empty: it does not.
func indexed(expr hcl.Expression, ctx *hcl.EvalContext) string {
	e, ok := expr.(*hclsyntax.ScopeTraversalExpr)
	if !ok {
		if e, ok := expr.(*hclsyntax.IndexExpr); ok {
			v, diags := e.Collection.Value(ctx)
			return node(v, !diags.HasErrors())
		}
		return ""
	}
	v, diags := e.Traversal[:1].TraverseAbs(ctx)
	for _, step := range e.Traversal[1:] {
		if diags.HasErrors() || node(v, true) != "" {
			break
		}
		v, diags = step.TraversalStep(v)
	}
	return node(v, !diags.HasErrors())
}

// node returns the address if a value is exactly one reference; empty: it is not.
func node(v cty.Value, ok bool) string {
	if !ok || !v.IsKnown() || v.IsNull() || v.Type() != cty.String {
		return ""
	}
	address, found := strings.CutPrefix(v.AsString(), funcs.Mark)
	address, closed := strings.CutSuffix(address, funcs.Mark)
	if !found || !closed {
		return ""
	}
	return address
}

// missing evaluates the existing part of a traversal or an index, and returns the first name that does not exist in it.
func missing(expr hcl.Expression, ctx *hcl.EvalContext) (object cty.Value, name string, ok bool) {
	switch e := expr.(type) {
	case *hclsyntax.IndexExpr:
		object, diags := e.Collection.Value(ctx)
		key, more := e.Key.Value(ctx)
		if diags.HasErrors() || more.HasErrors() || !key.IsWhollyKnown() || key.IsNull() || key.Type() != cty.String {
			return object, "", false
		}
		return object, key.AsString(), lacks(object, key.AsString())
	case *hclsyntax.RelativeTraversalExpr:
		object, diags := e.Source.Value(ctx)
		if diags.HasErrors() {
			return object, "", false
		}
		return follow(object, e.Traversal)
	case *hclsyntax.ScopeTraversalExpr:
		object, diags := e.Traversal[:1].TraverseAbs(ctx)
		if diags.HasErrors() {
			return object, "", false
		}
		return follow(object, e.Traversal[1:])
	}
	return cty.NilVal, "", false
}

func follow(object cty.Value, steps hcl.Traversal) (cty.Value, string, bool) {
	for _, step := range steps {
		name, _, ok := StepName(step)
		if ok && lacks(object, name) {
			return object, name, true
		}
		next, diags := step.TraversalStep(object)
		if diags.HasErrors() {
			return object, "", false
		}
		object = next
	}
	return object, "", false
}

func lacks(object cty.Value, name string) bool {
	return object.IsKnown() && !object.IsNull() && (object.Type().IsObjectType() && !object.Type().HasAttribute(name) ||
		object.Type().IsMapType() && object.HasIndex(cty.StringVal(name)).False())
}

func names(object cty.Value) []string {
	if object.Type().IsMapType() {
		return slices.Collect(maps.Keys(object.AsValueMap()))
	}
	return slices.Collect(maps.Keys(object.Type().AttributeTypes()))
}

// StepName returns the name in one step of a traversal, .name or ["name"].
func StepName(step hcl.Traverser) (string, hcl.Range, bool) {
	switch s := step.(type) {
	case hcl.TraverseAttr:
		return s.Name, s.SrcRange, true
	case hcl.TraverseIndex:
		if s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull() {
			return s.Key.AsString(), s.SrcRange, true
		}
	}
	return "", hcl.Range{}, false
}
