package hclspec

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// Try is a candidate that no file declares: a commit of the file, measured like its baseline, with other code.
type Try struct {
	Commit  string // name
	Rev     string // 40 digits; empty: the baseline's
	Patch   string // path of a file, absolute or relative to the project's directory; empty: none
	NoPatch string // reason why there is nothing to measure; empty: none
}

// Tried is the name of the compare and the variant of a Try, and the suffix of the name of its benchmark.
const Tried = "try"

// addTry adds the candidate of Options.Try to the candidates of its commit. It has the parameters of the baseline and
// all protected files. The key is empty if there is no such candidate, or its commit has a mistake.
func (l *loader) addTry(set *candidateSet, c Commit, variants []variantReader, commit cty.Value) (key string) {
	t := l.options.Try
	at := slices.IndexFunc(variants, func(v variantReader) bool { return v.Baseline })
	if t == nil || t.Commit != c.Name || at < 0 {
		return ""
	}
	like := variants[at]
	base := l.spec.Candidates[set.byKey[c.Name+"/"+like.Name]]
	out := base
	out.Variant, out.Baseline = tryVariant(variants), false
	out.Key = c.Name + "/" + out.Variant
	out.Patch, out.NoPatch = t.Patch, t.NoPatch
	out.Rev = cmp.Or(t.Rev, out.Rev)
	source, patch := cty.NullVal(cty.String), cty.NullVal(cty.String)
	if c.Repo != (Address{}) {
		out.Source = Address{Kind: "source", Name: c.Repo.Name, Key: out.Key, Keyed: true}
		source = token(out.Source)
		tree := Source{
			Block: Block{Address: out.Source, Candidate: out.Key, Range: like.Range, Out: out.Out}, Repo: c.Repo,
			Rev: out.Rev, Patch: out.Patch, Copies: true, RevRange: out.RevRange,
		}
		for _, v := range variants {
			tree.Protect = append(tree.Protect, v.Protect...)
			tree.Copies = tree.Copies && (v.Copies || len(v.Protect) == 0)
		}
		slices.Sort(tree.Protect)
		tree.Protect = slices.Compact(tree.Protect)
		l.spec.Sources = append(l.spec.Sources, tree)
	}
	if out.Patch != "" {
		patch = cty.StringVal(out.Patch)
	}
	variant := cty.ObjectVal(map[string]cty.Value{
		"name": cty.StringVal(out.Variant), "baseline": cty.False, "params": like.value.GetAttr("params"),
	})
	set.byKey[out.Key] = len(set.values)
	set.values = append(set.values, cty.ObjectVal(map[string]cty.Value{
		"key": cty.StringVal(out.Key), "commit": commit, "variant": variant,
		"rev": cty.StringVal(out.Rev), "patch": patch, "source": source,
	}))
	l.spec.Candidates = append(l.spec.Candidates, out)
	if out.Out != nil {
		return ""
	}
	return out.Key
}

// tryVariant returns a name that no variant of the file has.
func tryVariant(variants []variantReader) string {
	name := Tried
	for slices.ContainsFunc(variants, func(v variantReader) bool { return v.Name == name }) {
		name += "-"
	}
	return name
}

// OnlyTry returns a spec in which a benchmark measures the candidate of a Try against its baseline, and nothing else.
// The compare that judges the benchmark gives the rules. Everything else in the file stays, so that the dependencies of
// both are made as usual.
func (s *Spec) OnlyTry(benchmark, commit string) (*Spec, error) {
	own := *s
	own.Benchmarks, own.Reports = nil, nil
	rules := Compare{Confidence: 0.95}
	var tried *Candidate
	for i := range s.Candidates {
		c := &s.Candidates[i]
		declared := slices.ContainsFunc(s.Variants, func(v Variant) bool { return v.Name == c.Variant })
		if c.Commit == commit && !declared {
			tried = c
		}
	}
	if tried == nil {
		return nil, fmt.Errorf("commit %s has no baseline to measure against", commit)
	}
	found := false
	for _, b := range s.Benchmarks {
		c, ok := s.candidate(b.Candidate)
		if b.Address.Name != benchmark || !ok || c.Commit != commit || !c.Baseline && c.Key != tried.Key {
			continue
		}
		if c.Key == tried.Key {
			found = true
			for _, judge := range slices.Backward(s.Compares) {
				if slices.Contains(judge.Of, b.Address) {
					rules = judge
				}
			}
		}
		b.Address.Name += " " + Tried // blocks of the benchmark itself have addresses of their own
		own.Benchmarks = append(own.Benchmarks, b)
	}
	if !found {
		return nil, fmt.Errorf("the for_each of benchmark.%s leaves %s out: it does not go over all candidates",
			benchmark, tried.Key)
	}
	rules.Address, rules.Of = Address{Kind: "compare", Name: Tried}, nil
	for _, b := range own.Benchmarks {
		if b.Candidate == tried.Key {
			rules.Of = append(rules.Of, b.Address)
		}
	}
	own.Compares = []Compare{rules}
	own.Try = &Try{Commit: commit, Rev: tried.Rev, Patch: tried.Patch, NoPatch: tried.NoPatch}
	return &own, nil
}

// Path returns the place, on this machine, of a file that the spec names.
func (s *Spec) Path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.Dir, filepath.FromSlash(name))
}
