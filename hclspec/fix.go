package hclspec

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

func fixSchema() *eval.Schema {
	return &eval.Schema{
		Kind: "fix", Label: true, Key: []string{"when", "run", "env", "pip", "verify", "effect", "after"},
		Free:   []string{"detect", "description", "caveat"},
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
	r := reader{Reader: l.scope.Reader(d.Block, static, nil), l: l, owner: d.address}
	f := Fix{
		Block: Block{Address: d.address, Range: d.Range}, Description: r.Str("description"), Detect: r.Pattern("detect", 0),
		Effect: r.Choice("effect", "unknown", "neutral", "perf", "unknown"), Caveat: r.Str("caveat"), After: r.refs("after", "fix"),
		Cases: map[string]FixCase{}, DetectRange: r.At("detect"),
	}
	exprs := d.Expressions(staticOfFix()...)
	r.Reader = l.scope.Reader(d.Block, exprs, eachNames())
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
		f.Cases[""] = same
	case len(set.byKey) == 0:
		l.shadow = true
		decodeCase(r.with("", cty.DynamicVal))
		l.shadow = false
	}
	if perCandidate {
		for i, c := range l.spec.Candidates {
			f.Cases[c.Key] = decodeCase(r.with(c.Key, l.each(instance{c.Key, set.values[i]})))
		}
	}
	if !r.Has("run") && !r.Has("env") && !r.Has("pip") && len(d.Blocks("file")) == 0 && !d.Misspelt() {
		r.Fail(d.Range, "Fix without effect", "%s says nothing to do: it needs run, a file block, env or pip.", r.Title())
	}
	l.spec.Fixes = append(l.spec.Fixes, f)
}

// decodeCase evaluates what a fix is for one candidate. Without when, a fix with detect waits until it is asked for, and
// any other applies wherever it is listed.
func decodeCase(r reader) FixCase {
	c := FixCase{When: r.When("when"), Run: r.texts("run"), Verify: r.command("verify"), Env: r.env(), Pip: r.Strs("pip")}
	if !r.Has("when") && r.Has("detect") {
		c.When = false
	}
	for _, file := range r.Block.Blocks("file") {
		r := r.nested(file)
		if r.Has("from") == r.Has("content") {
			r.Fail(file.Range, "Content of the file", "A file block needs exactly one of from and content.")
		}
		r.Need("to", "where the file goes; it may begin with $SITE")
		c.Files = append(c.Files, FixFile{From: r.text("from"), Content: r.Str("content"), To: r.text("to")})
	}
	return c
}
