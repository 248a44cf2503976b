package hclspec

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

func fixSchema() *eval.Schema {
	return &eval.Schema{
		Kind: "fix", Label: true, Key: []string{"when", "detect", "run", "env", "pip", "verify", "effect", "after"},
		Free:   []string{"description", "caveat"},
		Blocks: []*eval.Schema{{Kind: "file", Many: true, Key: []string{"from", "content", "to"}}},
	}
}

// staticOfFix are the attributes that are the same for all candidates.
func staticOfFix() []string { return []string{"description", "detect", "effect", "caveat", "after"} }

// decodeFixes evaluates every fix for every candidate, since a fix has no for_each but may use each.
func (l *loader) decodeFixes() {
	for _, d := range l.of("fix") {
		l.decodeFix(d)
	}
}

func (l *loader) decodeFix(d *declaration) {
	// What each stands for is known to the second context only, so that description = each.key is refused.
	var static []hcl.Expression
	for _, name := range staticOfFix() {
		if attr := d.Attrs[name]; attr != nil {
			static = append(static, attr.Expr)
		}
	}
	ctx, bad := l.scope.Context(static, nil)
	r := reader{l: l, block: d.Block, ctx: ctx, bad: bad, owner: d.address}
	f := Fix{
		Block: Block{Address: d.address, Range: d.Range}, Description: r.str("description"), Detect: r.pattern("detect", 0),
		Effect: r.choice("effect", "unknown", "neutral", "perf", "unknown"), Caveat: r.str("caveat"), After: r.refs("after", "fix"),
		Cases: map[string]FixCase{}, DetectRange: r.at("detect"),
	}
	exprs := d.Expressions(staticOfFix()...)
	r.ctx, r.bad = l.scope.Context(exprs, eachNames())
	perCandidate := slices.ContainsFunc(exprs, func(e hcl.Expression) bool {
		return slices.ContainsFunc(e.Variables(), func(t hcl.Traversal) bool { return t.RootName() == "each" })
	})
	set := l.candidates()
	switch {
	case !perCandidate:
		same := decodeCase(r)
		for key := range set.byKey {
			f.Cases[key] = same
		}
		if len(set.byKey) == 0 {
			f.Cases[""] = same
		}
	case len(set.byKey) == 0:
		l.shadow = true
		decodeCase(r.with("", cty.DynamicVal))
		l.shadow = false
	}
	if perCandidate {
		for key, i := range set.byKey {
			f.Cases[key] = decodeCase(r.with(key, l.each(instance{key, set.values[i]})))
		}
	}
	if !r.has("run") && !r.has("env") && !r.has("pip") && len(d.Blocks("file")) == 0 {
		r.fail(d.Range, "Fix without effect", "%s says nothing to do: it needs run, a file block, env or pip.", r.title())
	}
	l.spec.Fixes = append(l.spec.Fixes, f)
}

// with is the reader for one value of each.
func (r reader) with(key string, each cty.Value) reader {
	r.instance = key
	r.ctx = r.ctx.NewChild()
	r.ctx.Variables = map[string]cty.Value{"each": each}
	return r
}

// decodeCase evaluates what a fix is for one candidate. Without when, a fix with detect waits until it is asked for, and
// any other applies wherever it is listed.
func decodeCase(r reader) FixCase {
	c := FixCase{When: r.when("when"), Run: r.texts("run"), Verify: r.command("verify"), Env: r.env(), Pip: r.strs("pip")}
	if !r.has("when") && r.has("detect") {
		c.When = false
	}
	for _, file := range r.block.Blocks("file") {
		r := r.nested(file)
		if r.has("from") == r.has("content") {
			r.fail(file.Range, "Content of the file", "A file block needs exactly one of from and content.")
		}
		r.need("to", "where the file goes; it may begin with $SITE")
		c.Files = append(c.Files, FixFile{From: r.text("from"), Content: r.str("content"), To: r.text("to")})
	}
	return c
}
