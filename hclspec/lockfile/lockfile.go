package lockfile

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/hclspec/internal/syntax"
)

// lockSchemas returns the blocks of a lock file.
func lockSchemas() []*eval.Schema {
	return []*eval.Schema{
		{Kind: "repo", Label: true, Key: []string{"location", "described"}, Blocks: []*eval.Schema{
			{Kind: "rev", Label: true, Many: true, Key: []string{"commit", "tree"}},
			{Kind: "outside", Label: true, Many: true, Key: []string{"digests"}},
		}},
		{Kind: "image", Label: true, Key: []string{"digest", "size", "requires"}},
		{Kind: "fetch", Label: true, Key: []string{"sha256", "size"}},
		{Kind: "fix", Label: true, Key: []string{"commits", "revs", "at", "evidence"}},
		{Kind: "wheel", Label: true, Key: []string{"prebuilt", "refused"}, Blocks: []*eval.Schema{
			{Kind: "nearest", Label: true, Many: true, Key: []string{"commit", "back"}},
		}},
	}
}

// reader reads one block of the file.
type reader struct{ eval.Reader }

// nested returns a reader of a block inside this one.
func (r reader) nested(b *eval.Block) reader {
	r.Block = b
	return r
}

// Parse reads a lock file. The Lock is nil if there is an error among the diagnostics.
func Parse(src []byte, filename string) (*Lock, hcl.Diagnostics) {
	return ParseWithin(eval.StandardBounds(), src, filename)
}

// ParseWithin is Parse with other bounds. A file that exceeds them is an error.
func ParseWithin(bounds eval.Bounds, src []byte, filename string) (*Lock, hcl.Diagnostics) {
	scope := &eval.Scope{Diags: &diag.Diagnostics{}, Roots: map[string]eval.Root{}}
	var lock *Lock
	var diags hcl.Diagnostics
	if stopped := scope.Watch(bounds, func() { lock, diags = read(scope, src, filename) }); stopped != nil {
		return nil, hcl.Diagnostics{stopped}
	}
	return lock, diags
}

func read(scope *eval.Scope, src []byte, filename string) (*Lock, hcl.Diagnostics) {
	f, diags := scope.Parse(src, filename)
	for _, d := range diags {
		if d.Summary == syntax.Conflict {
			d.Detail = "Two changes of the lock were merged here, and git could not decide between them. Take " +
				"either side (git checkout --ours or --theirs) and run benchgraph plan: what the other one had is " +
				"looked up again."
			return nil, diags
		}
	}
	blocks, more := f.Blocks(lockSchemas())
	diags = append(diags, more...)
	lock := &Lock{
		Repos: map[string]Repo{}, Images: map[string]Image{}, Fetches: map[string]Fetch{},
		Fixes: map[string][]Fix{}, Wheels: map[string]map[string]string{},
		Nearest: map[string]map[string]Near{}, Refused: map[string]map[string]string{},
	}
	seen := map[string]bool{}
	for _, b := range blocks {
		r := reader{scope.Reader(b, b.Expressions(), nil)}
		name := b.Schema.Kind + "." + b.Name
		if seen[name] {
			r.Fail(b.Label, "Duplicate "+b.Schema.Kind,
				"%s is locked already. Two changes of this file may have been merged: keep one.", name)
			continue
		}
		seen[name] = true
		lock.read(r)
	}
	diags = append(diags, scope.Diags.All([]string{filename})...)
	for _, d := range diags {
		if strings.HasPrefix(d.Summary, "Unsupported ") {
			d.Detail += " A newer benchgraph may have written this file: use that one, or delete the block, which is " +
				"then looked up again."
		}
	}
	if diags.HasErrors() {
		return nil, diags
	}
	return lock, diags
}

func (lock *Lock) read(r reader) {
	name := r.Block.Name
	switch r.Block.Schema.Kind {
	case "repo":
		lock.Repos[name] = r.repo()
	case "image":
		pinned := Image{Digest: r.Str("digest"), Size: r.Whole("size", 0, 0), Requires: r.stringMap("requires")}
		if hex, ok := strings.CutPrefix(pinned.Digest, "sha256:"); !ok || !IsSHA256(hex) {
			r.Fail(r.Block.Range, "Invalid pin",
				"digest must be sha256: and 64 lower-case hexadecimal digits. Delete the block to resolve the image "+
					"again.")
		}
		lock.Images[name] = pinned
	case "fetch":
		lock.Fetches[name] = Fetch{SHA256: r.Str("sha256"), Size: r.Whole("size", 0, 0)}
	case "fix":
		revs, at, evidence := r.stringMap("revs"), r.stringMap("at"), r.stringMap("evidence")
		for _, commit := range r.Strs("commits") {
			for _, block := range blocksOf(at[commit]) {
				lock.Fixes[name] = append(lock.Fixes[name], Fix{Commit: commit, Rev: revs[commit],
					At: block, Evidence: evidence[commit]})
			}
		}
	case "wheel":
		lock.Wheels[name] = r.stringMap("prebuilt")
		if refused := r.stringMap("refused"); len(refused) > 0 {
			lock.Refused[name] = refused
		}
		if near := r.nearest(); len(near) > 0 {
			lock.Nearest[name] = near
		}
	}
}

// blocksOf returns the blocks in a text of at, each once; [""] for a fix of all blocks. Older lock files have
// "benchmark.b noise" for each call of noise: noise is no block.
func blocksOf(text string) []string {
	if text == "" {
		return []string{""}
	}
	var blocks []string
	for word := range strings.SplitSeq(text, " ") {
		if strings.Contains(word, ".") && !slices.Contains(blocks, word) {
			blocks = append(blocks, word)
		}
	}
	return blocks
}

// nearest reads the ancestors whose wheels serve, by candidate key.
func (r reader) nearest() map[string]Near {
	all := map[string]Near{}
	for _, b := range r.Block.Blocks("nearest") {
		r := r.nested(b)
		if _, ok := all[b.Name]; ok {
			r.Fail(b.Label, "Duplicate nearest",
				"%q is locked already. Two changes of this file may have been merged: keep one.", b.Name)
		}
		near := Near{Commit: r.Str("commit"), Back: int(r.Whole("back", 0, 0))}
		if !ObjectName(near.Commit) || near.Back < 1 {
			r.Fail(b.Range, "Invalid pin",
				"commit must have 40 lower-case hexadecimal digits, and back must be at least 1. Delete the block "+
					"to look for the wheel again.")
		}
		all[b.Name] = near
	}
	return all
}

func (r reader) repo() Repo {
	repo := Repo{Location: r.Str("location"), Revs: map[string]Rev{}, Outside: map[string]map[string]string{}}
	if r.Has("described") {
		repo.Described = r.stringMap("described")
	}
	for _, b := range r.Block.Blocks("rev") {
		r := r.nested(b)
		if _, ok := repo.Revs[b.Name]; ok {
			r.Fail(b.Label, "Duplicate rev",
				"%q is locked already. Two changes of this file may have been merged: keep one.", b.Name)
		}
		rev := Rev{Commit: r.Str("commit"), Tree: r.Str("tree")}
		if !ObjectName(rev.Commit) || rev.Tree != "" && !ObjectName(rev.Tree) {
			r.Fail(b.Range, "Invalid pin",
				"commit and tree must have 40 (or 64) lower-case hexadecimal digits. Delete the block to resolve "+
					"the revision again.")
		}
		repo.Revs[b.Name] = rev
	}
	for _, b := range r.Block.Blocks("outside") {
		repo.Outside[b.Name] = r.nested(b).stringMap("digests")
	}
	return repo
}

// ObjectName reports whether a text is the full name of a git object.
func ObjectName(s string) bool { return len(s) == 40 && isHex(s) || IsSHA256(s) }

// IsSHA256 reports whether a text is a SHA-256 in lower-case hexadecimal digits.
func IsSHA256(s string) bool { return len(s) == 64 && isHex(s) }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

func (r reader) stringMap(name string) map[string]string {
	out := map[string]string{}
	v, ok := r.As(name, cty.Map(cty.String), "a map of texts")
	if !ok {
		return out
	}
	for key, v := range v.AsValueMap() {
		out[key] = r.Literal(name, v)
	}
	return out
}

// Bytes returns the content of the lock file. Everything is in a fixed order, so that equal locks are equal files.
func (lock *Lock) Bytes() []byte {
	f := hclwrite.NewEmptyFile()
	body := f.Body()
	body.AppendUnstructuredTokens(hclwrite.Tokens{{Type: hclsyntax.TokenComment,
		Bytes: []byte("# Written by benchgraph apply. Commit it.\n")}})
	block := func(in *hclwrite.Body, kind, name string) *hclwrite.Body {
		return in.AppendNewBlock(kind, []string{name}).Body()
	}
	top := func(kind, name string) *hclwrite.Body {
		body.AppendNewline()
		return block(body, kind, name)
	}
	for _, name := range slices.Sorted(maps.Keys(lock.Repos)) {
		repo, b := lock.Repos[name], top("repo", name)
		b.SetAttributeValue("location", cty.StringVal(repo.Location))
		if len(repo.Described) > 0 {
			b.SetAttributeValue("described", stringsValue(repo.Described))
		}
		for _, spelling := range slices.Sorted(maps.Keys(repo.Revs)) {
			if repo.Revs[spelling].Commit == "" {
				continue
			}
			rev := block(b, "rev", spelling)
			rev.SetAttributeValue("commit", cty.StringVal(repo.Revs[spelling].Commit))
			rev.SetAttributeValue("tree", cty.StringVal(repo.Revs[spelling].Tree))
		}
		for _, overlay := range slices.Sorted(maps.Keys(repo.Outside)) {
			block(b, "outside", overlay).SetAttributeValue("digests", stringsValue(repo.Outside[overlay]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(lock.Images)) {
		b := top("image", name)
		b.SetAttributeValue("digest", cty.StringVal(lock.Images[name].Digest))
		if size := lock.Images[name].Size; size > 0 {
			b.SetAttributeValue("size", cty.NumberIntVal(size))
		}
		if requires := lock.Images[name].Requires; len(requires) > 0 {
			b.SetAttributeValue("requires", stringsValue(requires))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(lock.Fetches)) {
		b := top("fetch", name)
		b.SetAttributeValue("sha256", cty.StringVal(lock.Fetches[name].SHA256))
		b.SetAttributeValue("size", cty.NumberIntVal(lock.Fetches[name].Size))
	}
	for _, name := range slices.Sorted(maps.Keys(lock.Fixes)) {
		lock.writeFix(top("fix", name), name)
	}
	for _, name := range slices.Sorted(maps.Keys(lock.Wheels)) {
		b := top("wheel", name)
		b.SetAttributeValue("prebuilt", stringsValue(lock.Wheels[name]))
		if refused := lock.Refused[name]; len(refused) > 0 {
			b.SetAttributeValue("refused", stringsValue(clippedAll(refused)))
		}
		for _, key := range slices.Sorted(maps.Keys(lock.Nearest[name])) {
			near := block(b, "nearest", key)
			near.SetAttributeValue("commit", cty.StringVal(lock.Nearest[name][key].Commit))
			near.SetAttributeValue("back", cty.NumberIntVal(int64(lock.Nearest[name][key].Back)))
		}
	}
	return hclwrite.Format(f.Bytes())
}

func (lock *Lock) writeFix(b *hclwrite.Body, name string) {
	learnt := slices.SortedFunc(slices.Values(lock.Fixes[name]), func(a, b Fix) int {
		return cmp.Or(strings.Compare(a.Commit, b.Commit), strings.Compare(a.At, b.At))
	})
	commits := []cty.Value{}
	revs, at, evidence := map[string]string{}, map[string]string{}, map[string]string{}
	for i, fix := range learnt {
		if i == 0 || learnt[i-1].Commit != fix.Commit {
			commits = append(commits, cty.StringVal(fix.Commit))
		}
		if fix.Rev != "" {
			revs[fix.Commit] = fix.Rev
		}
		if fix.At != "" {
			at[fix.Commit] = strings.TrimSpace(at[fix.Commit] + " " + fix.At)
		}
		if fix.Evidence != "" {
			evidence[fix.Commit] = clipped(fix.Evidence)
		}
	}
	b.SetAttributeValue("commits", cty.TupleVal(commits))
	if len(revs) > 0 {
		b.SetAttributeValue("revs", stringsValue(revs))
	}
	if len(at) > 0 {
		b.SetAttributeValue("at", stringsValue(at))
	}
	if len(evidence) > 0 {
		b.SetAttributeValue("evidence", stringsValue(evidence))
	}
}

// clipped shortens and cleans a log line for the file: logs may hold any bytes.
func clipped(line string) string {
	line = strings.ToValidUTF8(strings.ReplaceAll(line, "\x00", ""), "�")
	if runes := []rune(line); len(runes) > 500 {
		line = string(runes[:500]) + "…"
	}
	return line
}

func clippedAll(lines map[string]string) map[string]string {
	all := make(map[string]string, len(lines))
	for key, line := range lines {
		all[key] = clipped(line)
	}
	return all
}

func stringsValue(m map[string]string) cty.Value {
	all := map[string]cty.Value{}
	for key, v := range m {
		all[key] = cty.StringVal(v)
	}
	return cty.ObjectVal(all)
}
