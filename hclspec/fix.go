package hclspec

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

func fixSchema() *eval.Schema {
	return &eval.Schema{
		Kind: "fix", Label: true, Key: []string{"when", "run", "env", "pip", "verify", "effect", "after"},
		Free:   []string{"detect", "patches", "description", "caveat"},
		Blocks: []*eval.Schema{{Kind: "file", Many: true, Key: []string{"from", "content", "to"}}},
	}
}

// staticOfFix returns the attributes that are the same for all candidates.
func staticOfFix() []string {
	return []string{"description", "detect", "patches", "effect", "caveat", "after"}
}

// decodeFixes evaluates every fix for every candidate, since a fix has no for_each but may use each.
func (l *loader) decodeFixes() {
	for _, d := range l.of("fix") {
		l.decodeFix(d)
	}
}

func (l *loader) decodeFix(d *declaration) {
	// Only the second reader knows each, so that description = each.key is refused.
	var static []hcl.Expression
	for _, name := range staticOfFix() {
		if attr := d.Attrs[name]; attr != nil {
			static = append(static, attr.Expr)
		}
	}
	r := reader{Reader: l.scope.Reader(d.Block, static, nil), l: l, owner: d.address}
	f := Fix{
		Block: Block{Address: d.address, Range: d.Range}, Description: r.Str("description"),
		Detect: r.Pattern("detect", 0),
		Effect: r.Choice("effect", "unknown", "neutral", "perf", "unknown"), Caveat: r.Str("caveat"),
		After: r.refs("after", "fix"),
		Cases: map[string]FixCase{}, Patches: r.Bool("patches"),
	}
	r.Reader = l.scope.Reader(d.Block, d.Expressions(staticOfFix()...), eachNames())
	set, perCandidate := l.candidates(), r.UsesEach
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
		l.eachFixes[d.address] = r
		for i, c := range l.spec.Candidates {
			l.decodeCaseOf(&f, c, r.with(c.Key, l.each(instance{c.Key, set.values[i]}, false)))
		}
	}
	if !r.Has("run") && !r.Has("env") && !r.Has("pip") && len(d.Blocks("file")) == 0 && !d.Misspelt() {
		r.Fail(d.Range, "Fix without effect", "%s does nothing: it needs run, a file block, env or pip.",
			r.Title())
	}
	if f.Patches && !r.Has("detect") {
		r.Fail(r.At("patches"), "Nothing to learn", "%s has no detect, so no failure teaches it.", r.Title())
	}
	f.InImage = r.Has("pip") || len(l.of("image")) > 0 && usesSite(r.Block)
	l.spec.Fixes = append(l.spec.Fixes, f)
}

// evaluateFixes evaluates the fixes that use each for the blocks that list them and have no candidate, with the each of
// that block.
func (l *loader) evaluateFixes() {
	for i := range l.spec.Wheels {
		w := &l.spec.Wheels[i]
		l.evaluateFixesOf(w.Block, w.Fixes)
		if w.Build != nil {
			l.evaluateFixesOf(w.Block, w.Build.Fixes)
		}
	}
	for i := range l.spec.Images {
		l.evaluateFixesOf(l.spec.Images[i].Block, l.spec.Images[i].Fixes)
	}
	for i := range l.spec.Benchmarks {
		l.evaluateFixesOf(l.spec.Benchmarks[i].Block, l.spec.Benchmarks[i].Fixes)
	}
	for i := range l.spec.Tasks {
		l.evaluateFixesOf(l.spec.Tasks[i].Block, l.spec.Tasks[i].Fixes)
	}
}

func (l *loader) evaluateFixesOf(b Block, listed []Address) {
	for _, a := range listed {
		r, ok := l.eachFixes[a]
		i := slices.IndexFunc(l.spec.Fixes, func(f Fix) bool { return f.Address == a })
		if !ok || i < 0 || b.Candidate != "" {
			continue
		}
		d := l.byName[Address{Kind: b.Address.Kind, Name: b.Address.Name}]
		if !b.Address.Keyed {
			at := b.Range
			if attr := d.Attrs["fixes"]; attr != nil {
				at = attr.Expr.Range()
			}
			r.Fail(at, "Nothing for each",
				"%s uses each, and %s %q, which lists it, has no for_each: give it one, or write the fix without each.",
				a, b.Address.Kind, b.Address.Name)
			continue
		}
		for _, one := range d.instances {
			if one.key == b.Address.Key {
				l.spec.Fixes[i].Cases[b.Address.String()] = decodeCase(r.with(one.key, l.each(one, false)))
			}
		}
	}
}

// usesSite reports whether a fix writes into the directory in which Python finds packages.
func usesSite(b *eval.Block) bool {
	blocks := append([]*eval.Block{b}, b.Blocks("file")...)
	return slices.ContainsFunc(blocks, func(b *eval.Block) bool {
		for _, name := range []string{"run", "to"} {
			if attr := b.Attrs[name]; attr != nil && mentionsSite(attr.Expr) {
				return true
			}
		}
		return false
	})
}

// mentionsSite reports whether a text in an expression contains $SITE.
func mentionsSite(expr hcl.Expression) bool {
	node, native := expr.(hclsyntax.Node)
	if !native {
		return false
	}
	found := false
	_ = hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl.Diagnostics {
		if lit, ok := n.(*hclsyntax.LiteralValueExpr); ok && lit.Val.Type() == cty.String && lit.Val.IsKnown() &&
			!lit.Val.IsNull() {
			found = found || strings.Contains(lit.Val.AsString(), "$SITE") ||
				strings.Contains(lit.Val.AsString(), "${SITE}")
		}
		return nil
	})
	return found
}

// decodeCaseOf evaluates a fix for one candidate. With a mistake, the candidate is out: the effect of the fix on it is
// unknown.
func (l *loader) decodeCaseOf(f *Fix, c Candidate, r reader) {
	of := row{c.Commit, c.Key}
	if l.outOf(of) != nil {
		f.Cases[c.Key] = FixCase{}
		return
	}
	out := l.attempt(fault{row: of, block: f.Address, at: f.Address, instance: c.Key}, false, func() {
		f.Cases[c.Key] = decodeCase(r)
	})
	if out != nil {
		f.Cases[c.Key] = FixCase{}
		l.leaveOut(of, out)
	}
}

// decodeCase evaluates a fix for one candidate. Without when, a fix with detect waits until a failure asks for it, and
// any other fix applies wherever it is listed.
func decodeCase(r reader) FixCase {
	c := FixCase{When: r.When("when"), Run: r.texts("run"), Verify: r.command("verify"), Env: r.env(),
		Pip: r.Strs("pip")}
	if !r.Has("when") && r.Has("detect") {
		c.When = false
	}
	detect := r.Has("detect")
	for _, file := range r.Block.Blocks("file") {
		r := r.nested(file)
		if r.Has("from") == r.Has("content") {
			r.Fail(file.Range, "Content of the file", "A file block needs exactly one of from and content.")
		}
		r.Need("to", "the path of the file; it may begin with $SITE")
		c.Files = append(c.Files, FixFile{From: r.text("from"), Content: r.Str("content"), To: r.text("to")})
		if c.When || detect {
			r.placeable(c.Files[len(c.Files)-1])
		}
	}
	return c
}

// placeable refuses a file that no fix can put in place. A path with a reference or a variable is not known yet, and
// the files of a pack are not files of the project.
func (r reader) placeable(f FixFile) {
	literal := func(t Text) (string, bool) {
		return t.String(), len(t) == 1 && !strings.Contains(t.String(), "$")
	}
	if from, ok := literal(f.From); ok && !r.l.packFiles[r.Block.Range.Filename] {
		if _, err := r.l.dir.Size(from); err != nil {
			why, _, _ := strings.Cut(err.Error(), ": write ") // a pattern, which a fix does not take
			r.Fail(r.At("from"), "File not readable", "%s. Write the path of a file of the project, or its text as "+
				"content.", strings.ToUpper(why[:1])+why[1:])
		}
	}
	to, ok := literal(f.To)
	switch {
	case !ok || filepath.IsLocal(to) && filepath.Clean(to) != ".":
	case !filepath.IsAbs(to):
		r.Fail(r.At("to"), "File outside the working directory",
			"to is %q. Write a path below the working directory; in an image, an absolute one, or one that begins "+
				"with $SITE.", to)
	case len(r.l.of("image")) == 0:
		r.Fail(r.At("to"), "File outside the working directory",
			"to is %q, and only an image takes an absolute path. Write a path below the working directory.", to)
	}
}
