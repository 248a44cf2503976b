package eval

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/benchgraph/benchgraph/hclspec/internal/syntax"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Root defines one first part of references.
type Root struct {
	What  string                              // the noun for messages: "local value", "wheel"
	Names func() []string                     // the names below it
	Get   func(name string) (cty.Value, bool) // the value of one name; nil: the root has only its whole value
	All   func() cty.Value
}

// Scope evaluates expressions.
type Scope struct {
	Diags   *diag.Diagnostics
	Funcs   map[string]function.Function
	Roots   map[string]Root
	Partial bool            // a file could not be read completely: it may declare an unknown name
	Lost    map[string]bool // names of blocks whose kind is misspelt

	running []step
	active  map[string]bool // the names in running
	cyclic  map[string]bool // names in a cycle, which have no value
	source  syntax.Reader   // of the files so far
	chained bool            // a chain of names was too long

	most    uint64      // memory in bytes that the evaluation may hold; 0: no watchdog
	stopped atomic.Bool // the evaluation exceeded its bounds
	mu      sync.Mutex
	at      place // the current expression
}

// maxChained bounds the names under evaluation, each of which needs the next: each name takes some kilobytes of stack.
const maxChained = 2000

// step is one name that is being evaluated.
type step struct {
	name  string
	place hcl.Range
}

// Each lists the attributes of each that a block may use, and their parts if these have fixed names. Nil: the block has
// no for_each, and so no each.
type Each map[string][]string

// Context prepares the evaluation of expressions: it evaluates every name in them, and reports unknown names. The
// returned set has the expressions that use an attribute which each never has; they have no value.
func (s *Scope) Context(exprs []hcl.Expression, each Each) (*hcl.EvalContext, map[hcl.Expression]bool) {
	var whole map[string]cty.Value
	var parts map[string]map[string]cty.Value
	var bad map[hcl.Expression]bool
	prepare := func() {
		if whole == nil {
			whole, parts, bad = map[string]cty.Value{}, map[string]map[string]cty.Value{}, map[hcl.Expression]bool{}
		}
	}
	for _, expr := range exprs {
		if literal(expr) {
			continue
		}
		for _, t := range expr.Variables() {
			prepare()
			if t.RootName() == "each" || t.RootName() == syntax.EachKey {
				if !s.checkEach(t, each) {
					bad[expr] = true
				}
				continue
			}
			s.resolve(t, whole, parts)
		}
	}
	for root, some := range parts {
		if all, ok := whole[root]; ok {
			if all.IsKnown() && all.Type().IsObjectType() {
				maps.Copy(some, all.AsValueMap())
			} else {
				continue
			}
		}
		whole[root] = cty.ObjectVal(some)
	}
	return &hcl.EvalContext{Variables: whole, Functions: s.Funcs}, bad
}

// literal reports whether an expression is a text without references, as many are.
func literal(expr hcl.Expression) bool {
	template, ok := expr.(*hclsyntax.TemplateExpr)
	return ok && template.IsStringLiteral()
}

func (s *Scope) resolve(t hcl.Traversal, whole map[string]cty.Value, parts map[string]map[string]cty.Value) {
	name := t.RootName()
	root, ok := s.Roots[name]
	if !ok {
		s.Diags.Error("", t.SourceRange(), "Unknown name", s.unknownRoot(t))
		whole[name] = cty.DynamicVal
		return
	}
	if root.Get != nil && len(t) > 1 {
		if second, at, ok := diag.StepName(t[1]); ok {
			if parts[name] == nil {
				parts[name] = map[string]cty.Value{}
			}
			if _, done := parts[name][second]; done {
				return
			}
			v, found := root.Get(second)
			if !found {
				v = cty.DynamicVal
				if !s.Partial && !s.Lost[second] {
					s.Diags.Error("", hcl.RangeBetween(t.SourceRange(), at), "Unknown "+root.What,
						s.unknown(root, second, t[2:]))
				}
			}
			parts[name][second] = v
			return
		}
	}
	if _, done := whole[name]; !done {
		whole[name] = root.All()
	}
}

// unknown says that nothing below a root has a name. The names of executors have two parts.
func (s *Scope) unknown(root Root, name string, rest hcl.Traversal) string {
	dotted := func(known string) bool { return strings.Contains(known, ".") }
	if len(rest) > 0 && !s.Diags.Full() && slices.ContainsFunc(root.Names(), dotted) {
		if third, _, ok := diag.StepName(rest[0]); ok {
			name += "." + third
		}
	}
	return fmt.Sprintf("No %s is called %q.%s", root.What, name, s.choices(name, root.Names))
}

// choices is diag.Choices, but empty if further diagnostics are only counted: to compare a name with all others takes
// long.
func (s *Scope) choices(given string, names func() []string) string {
	if s.Diags.Full() {
		return ""
	}
	return diag.Choices(given, names())
}

func (s *Scope) unknownRoot(t hcl.Traversal) string {
	name := t.RootName()
	if len(t) == 1 && name == strings.ToUpper(name) {
		return fmt.Sprintf("Nothing is called %q. A variable of the shell is written $%s, or $${%s} with braces.", name,
			name, name)
	}
	hint := diag.Suggest(name, append(slices.Collect(maps.Keys(s.Roots)), "each"))
	switch {
	case len(t) == 1:
		return fmt.Sprintf("Nothing is called %q.%s A text stands in double quotes; a reference is written kind.name.",
			name, hint)
	case hint != "":
		return fmt.Sprintf("Nothing is called %q.%s", name, hint)
	}
	return fmt.Sprintf("Nothing is called %q. A reference begins with each, var, local, candidates, or the kind of "+
		"a block, as in wheel.name.", name)
}

// checkEach reports attributes of each that no instance can have, once for the place and not for every instance.
func (s *Scope) checkEach(t hcl.Traversal, each Each) bool {
	if each == nil {
		s.Diags.Error("", t.SourceRange(), "No each here",
			"The attributes of each exist only where the block has for_each, for instance for_each = candidates.")
		return false
	}
	if len(t) < 2 || t.RootName() == syntax.EachKey {
		return true
	}
	name, at, ok := diag.StepName(t[1])
	if !ok {
		return true
	}
	parts, known := each[name]
	if !known {
		s.Diags.Error("", at, "Unknown attribute of each",
			fmt.Sprintf("each has no %q.%s", name, diag.Choices(name, slices.Collect(maps.Keys(each)))))
		return false
	}
	if parts == nil || len(t) < 3 {
		return true
	}
	part, at, ok := diag.StepName(t[2])
	if ok && !slices.Contains(parts, part) {
		s.Diags.Error("", at, "Unknown attribute of each."+name,
			fmt.Sprintf("each.%s has no %q.%s", name, part, diag.Choices(part, parts)))
		return false
	}
	return true
}

// Value evaluates an expression. A mistake is recorded, and the value is unknown.
func (s *Scope) Value(expr hcl.Expression, ctx *hcl.EvalContext, instance string) cty.Value {
	s.evaluating(expr, instance)
	v, diags := expr.Value(ctx)
	s.Diags.Add(instance, diags...)
	if diags.HasErrors() {
		return cty.DynamicVal
	}
	s.weigh(v)
	return v
}

// Static evaluates an expression that belongs to no instance. If the name under evaluation turns out to need itself, it
// has no value.
func (s *Scope) Static(expr hcl.Expression) cty.Value {
	ctx, bad := s.Context([]hcl.Expression{expr}, nil)
	if n := len(s.running); bad[expr] || n > 0 && s.cyclic[s.running[n-1].name] {
		return cty.DynamicVal
	}
	return s.Value(expr, ctx, "")
}

// Enter marks a name as under evaluation until leave is called. If the name is under evaluation already, Enter reports
// the cycle and returns false.
func (s *Scope) Enter(name string, place hcl.Range) (leave func(), ok bool) {
	if len(s.running) == maxChained && !s.active[name] {
		if !s.chained {
			s.chained = true
			s.Diags.Error("", place, "Too many names that need each other", fmt.Sprintf(
				"This name is needed by one that is needed by another, and so on, %d times. Make the chain shorter.",
				maxChained))
		}
		return nil, false
	}
	if s.active[name] {
		i := slices.IndexFunc(s.running, func(running step) bool { return running.name == name })
		chain := append(slices.Clone(s.running[i:]), s.running[i])
		if s.cyclic == nil {
			s.cyclic = map[string]bool{}
		}
		for _, member := range chain {
			s.cyclic[member.name] = true
		}
		s.Diags.Error("", s.running[i].place, "Cycle", tellChain(chain))
		return nil, false
	}
	if s.active == nil {
		s.active = map[string]bool{}
	}
	s.active[name] = true
	s.running = append(s.running, step{name, place})
	return func() {
		delete(s.active, name)
		s.running = s.running[:len(s.running)-1]
	}, true
}

// tellChain lists the names in a cycle, with their places.
func tellChain(steps []step) string {
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = fmt.Sprintf("%s (%s:%d)", s.name, s.place.Filename, s.place.Start.Line)
	}
	if len(names) > 20 {
		names = slices.Concat(names[:10], []string{"…"}, names[len(names)-5:])
	}
	return "Each of these needs the next one: " + strings.Join(names, " → ") + "."
}
