package advice

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/benchgraph/benchgraph/hclspec"
)

// files warns of mistakes that a spec does not show: keys that an object has twice, variables that nothing reads, and
// a skip of nothing. JSON files refuse keys that are there twice.
func (a *adviser) files(spec *hclspec.Spec, files map[string]*hcl.File) {
	uses := uses{names: map[string]bool{}}
	var variables []*hclsyntax.Block
	for _, name := range spec.Files {
		file := files[name]
		if file == nil {
			continue
		}
		body, native := file.Body.(*hclsyntax.Body)
		if !native {
			uses.all = true // the expressions in JSON are texts
			continue
		}
		for _, block := range body.Blocks {
			own := ""
			if block.Type == "variable" && len(block.Labels) == 1 {
				own = block.Labels[0]
				variables = append(variables, block)
			}
			_ = hclsyntax.VisitAll(block, func(n hclsyntax.Node) hcl.Diagnostics {
				uses.read(n, own)
				if object, ok := n.(*hclsyntax.ObjectConsExpr); ok {
					a.twice(object)
				}
				return nil
			})
			a.unmet(spec, block)
			a.total(spec, block)
		}
	}
	for _, block := range variables {
		if name := block.Labels[0]; !uses.all && !uses.names[name] {
			a.warn(block.DefRange(), name, "Variable that nothing reads",
				"No expression reads var.%[1]s, so that a value of it has no effect. Write var.%[1]s where the value "+
					"belongs, or remove the variable.", name)
		}
	}
}

// uses holds the names of the variables that expressions read.
type uses struct {
	names map[string]bool
	all   bool // an expression may read any of them
}

// read adds the variable that a node of a file reads. A variable's own validation is no use of it.
func (u *uses) read(n hclsyntax.Node, own string) {
	expr, ok := n.(*hclsyntax.ScopeTraversalExpr)
	if !ok || expr.Traversal.RootName() != "var" {
		return
	}
	if len(expr.Traversal) > 1 {
		if step, ok := expr.Traversal[1].(hcl.TraverseAttr); ok {
			u.names[step.Name] = u.names[step.Name] || step.Name != own
			return
		}
	}
	u.all = true
}

// twice warns of keys that are there more than once: the last value counts.
func (a *adviser) twice(object *hclsyntax.ObjectConsExpr) {
	first := map[string]hcl.Range{}
	for _, item := range object.Items {
		key, ok := item.KeyExpr.(*hclsyntax.ObjectConsKeyExpr)
		if !ok {
			continue
		}
		name := hcl.ExprAsKeyword(key.Wrapped)
		if text, is := key.Wrapped.(*hclsyntax.TemplateExpr); is && text.IsStringLiteral() {
			value, _ := text.Value(nil)
			name = value.AsString()
		}
		if name == "" || key.ForceNonLiteral {
			continue
		}
		if before, again := first[name]; again {
			at := key.Range()
			a.warn(at, at.String(), "Key that is there twice", "%q has a value already, at %s, and only the last one "+
				"counts. Remove one of them.", name, before)
			continue
		}
		first[name] = key.Range()
	}
}

// unmet warns of a skip over all candidates or commits whose condition nothing meets, and whose text differs from a
// name or a parameter only in its case or in spaces. Any other condition may be about rows that are not measured now.
func (a *adviser) unmet(spec *hclspec.Spec, block *hclsyntax.Block) {
	all, when := block.Body.Attributes["for_each"], block.Body.Attributes["when"]
	if block.Type != "skip" || len(block.Labels) != 1 || all == nil || when == nil ||
		len(spec.Candidates) == 0 || len(spec.Mistakes) > 0 || len(when.Expr.Variables()) == 0 {
		return
	}
	if of := hcl.ExprAsKeyword(all.Expr); of != "candidates" && of != "commit" {
		return
	}
	for _, v := range when.Expr.Variables() {
		if v.RootName() != "each" {
			return
		}
	}
	name, near := block.Labels[0], ""
	for i := range spec.Skips {
		if spec.Skips[i].Address.Name == name {
			return
		}
	}
	if a.written == nil {
		a.written = spellings(spec)
	}
	_ = hclsyntax.VisitAll(when.Expr, func(n hclsyntax.Node) hcl.Diagnostics {
		if text, ok := n.(*hclsyntax.TemplateExpr); ok && text.IsStringLiteral() {
			value, _ := text.Value(nil)
			given := value.AsString()
			if is, ok := a.written[fold(given)]; ok && is != given {
				near = fmt.Sprintf("%q is written %q there", given, is)
			}
		}
		return nil
	})
	if near != "" {
		a.warn(when.Expr.Range(), name, "Condition never met",
			"Nothing meets the condition of skip.%s, and %s. Correct the condition.", name, near)
	}
}

// spellings returns the names of commits and variants, and the parameters of commits, by their folded texts.
func spellings(spec *hclspec.Spec) map[string]string {
	written := map[string]string{}
	for i := range spec.Candidates {
		c := &spec.Candidates[i]
		written[fold(c.Commit)], written[fold(c.Variant)] = c.Commit, c.Variant
	}
	for i := range spec.Commits {
		var params map[string]any
		_ = json.Unmarshal(spec.Commits[i].Params, &params) // params that are no object were reported
		for _, value := range params {
			if text, ok := value.(string); ok {
				written[fold(text)] = text
			}
		}
	}
	return written
}

// fold returns a text without what people write differently by mistake.
func fold(text string) string { return strings.ToLower(strings.TrimSpace(text)) }
