package syntax

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
)

// EachKey is the name that each.key has in an hcl.EvalContext. Most blocks use nothing else of each, and to make and
// search an object for every instance takes long.
const EachKey = "each.key"

// NameKeys makes each.key a single name, everywhere in an expression.
func NameKeys(expr hclsyntax.Expression) {
	var names []*hclsyntax.ScopeTraversalExpr
	literal, shadowed := map[hclsyntax.Expression]bool{}, false
	// The callback returns no diagnostics, so neither does VisitAll.
	_ = hclsyntax.VisitAll(expr, func(node hclsyntax.Node) hcl.Diagnostics {
		switch e := node.(type) {
		case *hclsyntax.ScopeTraversalExpr:
			names = append(names, e)
		case *hclsyntax.ObjectConsKeyExpr:
			literal[e.Wrapped] = true // a single name would be the text of the key
		case *hclsyntax.ForExpr:
			shadowed = shadowed || e.KeyVar == "each" || e.ValVar == "each"
		}
		return nil
	})
	for _, e := range names {
		if t := e.Traversal; !shadowed && !literal[e] && len(t) > 1 && t.RootName() == "each" {
			if name, at, ok := diag.StepName(t[1]); ok && name == "key" {
				root := hcl.TraverseRoot{Name: EachKey, SrcRange: hcl.RangeBetween(t[0].SourceRange(), at)}
				e.Traversal = append(hcl.Traversal{root}, t[2:]...)
			}
		}
	}
}

// EachIn reports whether expressions use each, and whether they use more of it than its key.
func EachIn(exprs []hcl.Expression) (used, whole bool) {
	for _, e := range exprs {
		for _, t := range e.Variables() {
			used = used || t.RootName() == EachKey || t.RootName() == "each"
			whole = whole || t.RootName() == "each"
		}
	}
	return used, whole
}
