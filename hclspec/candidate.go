package hclspec

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/hclspec/internal/project"
)

func variantSchema() *eval.Schema {
	return &eval.Schema{Kind: "variant", Label: true, Key: []string{"rev", "patch", "baseline", "protect", "protected"},
		Free: []string{"optional", "params"}}
}

// candidateSet holds the candidates: commits × variants.
type candidateSet struct {
	value  cty.Value      // object by key; unknown when the commits are
	byKey  map[string]int // index into values and Spec.Candidates
	values []cty.Value    // key, commit, variant, rev, patch, source
}

// variantReader is a variant with a reader that evaluates it for a commit.
type variantReader struct {
	Variant
	reader
	value cty.Value // name, baseline, params
}

// variantEach returns the attributes that each has in a variant block.
func variantEach() eval.Each {
	return eval.Each{
		"key": nil, "commit": {"name", "repo", "rev", "parent", "title", "params"},
		"variant": {"name", "baseline", "params"},
	}
}

// variantSet holds all variants.
type variantSet struct {
	value cty.Value // object by name
	list  []variantReader
}

// variants decodes, once, the part of each variant that is the same for all commits.
func (l *loader) variants() *variantSet {
	if l.variant != nil {
		return l.variant
	}
	leave, ok := l.scope.Enter("variant", l.first("variant"))
	if !ok {
		return &variantSet{value: cty.DynamicVal}
	}
	defer leave()
	set := &variantSet{}
	values := map[string]cty.Value{}
	for _, d := range l.of("variant") {
		r := reader{Reader: l.scope.Reader(d.Block, d.Expressions(), variantEach()), l: l, owner: d.address}
		detail := badName(d.Name)
		if detail == "" && (slices.Contains([]string{".", "..", "record.json"}, d.Name) ||
			strings.HasPrefix(d.Name, "canary.")) {
			detail = "a block stores something else under that name"
		}
		if detail != "" {
			r.Fail(d.Label, "Invalid name", "%q cannot name a variant: %s.", d.Name, detail)
			continue
		}
		v := variantReader{reader: r, Variant: Variant{
			Block: Block{Address: d.address, Range: d.Range}, Name: d.Name, Baseline: r.Bool("baseline"),
			Optional: r.Bool("optional"), Protect: r.Globs("protect"),
			Copies: r.Choice("protected", "refuse", "refuse", "baseline") == "baseline",
		}}
		v.value = cty.ObjectVal(map[string]cty.Value{
			"name": cty.StringVal(d.Name), "baseline": cty.BoolVal(v.Baseline),
			"params": l.params.complete(r.object("params")),
		})
		values[d.Name] = v.value
		set.list = append(set.list, v)
	}
	set.value = cty.ObjectVal(values)
	l.variant = set
	return set
}

// candidates decodes commit × variant once.
func (l *loader) candidates() *candidateSet {
	if l.set != nil {
		return l.set
	}
	leave, ok := l.scope.Enter("candidates", l.first("commit"))
	if !ok {
		return &candidateSet{value: cty.DynamicVal}
	}
	defer leave()
	set := &candidateSet{byKey: map[string]int{}}
	commits := l.allCommits()
	variants := l.variants().list
	all := map[string]cty.Value{}
	if n := len(commits.list) * len(variants); n > maxInstances {
		l.scope.Diags.Error("", l.first("commit"), "Too many candidates", fmt.Sprintf(
			"%d commits in %d variants are %d candidates; a project can have %d. Divide it into several projects.",
			len(commits.list), len(variants), n, maxInstances))
		l.set = &candidateSet{value: cty.DynamicVal}
		return l.set
	}
	for _, c := range commits.list {
		first, against := len(l.spec.Sources), ""
		for _, v := range variants {
			key := c.Name + "/" + v.Name
			candidate, value := l.tryCandidate(c, v, commits.byName[c.Name])
			set.byKey[key] = len(set.values)
			set.values = append(set.values, value)
			if candidate.Out == nil {
				all[key] = value
			}
			l.spec.Candidates = append(l.spec.Candidates, candidate)
			if candidate.Source != (Address{}) {
				l.spec.Sources = append(l.spec.Sources, Source{
					Block: Block{Address: candidate.Source, Candidate: key, Range: v.Range, Out: candidate.Out},
					Repo:  c.Repo, Rev: candidate.Rev, Patch: candidate.Patch, Protect: v.Protect, Copies: v.Copies,
					RevRange: candidate.RevRange,
				})
			}
			if candidate.Baseline {
				against = candidate.Rev
			}
		}
		if key := l.addTry(set, c, variants, commits.byName[c.Name]); key != "" {
			all[key] = set.values[set.byKey[key]]
		}
		for i := first; i < len(l.spec.Sources); i++ {
			if s := &l.spec.Sources[i]; len(s.Protect) > 0 {
				s.Against = against
			}
		}
	}
	for _, v := range variants {
		l.spec.Variants = append(l.spec.Variants, v.Variant)
		if len(commits.list) == 0 {
			v.checkOnly()
		}
	}
	set.value = cty.ObjectVal(all)
	if !commits.value.IsKnown() {
		set.value = cty.DynamicVal
	}
	l.set = set
	return set
}

// checkOnly finds the mistakes of a variant if there are no commits.
func (v variantReader) checkOnly() {
	r := v.with("", cty.DynamicVal)
	r.Str("rev")
	r.Str("patch")
}

// tryCandidate calls candidate. A candidate with a mistake is out; the others stay.
func (l *loader) tryCandidate(c Commit, v variantReader, commit cty.Value) (out Candidate, value cty.Value) {
	key := c.Name + "/" + v.Name
	r := row{commit: c.Name, candidate: key}
	at := Address{Kind: "variant", Name: v.Name, Key: c.Name, Keyed: true}
	why := l.attempt(fault{row: r, block: v.Address, at: at, instance: key}, false, func() {
		out, value = l.candidate(c, v, commit)
	})
	if out.Out = c.Out; why != nil && c.Out == nil {
		out.Out = why
		l.leaveOut(r, why)
	}
	return out, value
}

// candidate evaluates a variant for a commit.
func (l *loader) candidate(c Commit, v variantReader, commit cty.Value) (Candidate, cty.Value) {
	key := c.Name + "/" + v.Name
	r := v.with(key, cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(key), "commit": commit,
		"variant": v.value}))
	out := Candidate{Key: key, Commit: c.Name, Variant: v.Name, Baseline: v.Baseline, Range: c.Range,
		RevRange: r.At("rev"), PatchRange: r.At("patch")}
	if !r.Has("rev") {
		out.RevRange = c.RevRange
	}
	spelt, known := r.revision("rev", c.Rev)
	rev := l.lock.resolve(c.Repo, spelt)
	if why := l.lock.unknown(c.Repo, spelt); why != "" && c.Out == nil {
		r.Fail(out.RevRange, unknownRevision, "%s", why)
	}
	v.patch(r, &out, c)
	source, patch := cty.NullVal(cty.String), cty.NullVal(cty.String)
	if c.Repo != (Address{}) {
		out.Rev = rev
		out.Source = Address{Kind: "source", Name: c.Repo.Name, Key: key, Keyed: true}
		source = token(out.Source)
	}
	if out.Patch != "" {
		patch = cty.StringVal(out.Patch)
	}
	value := map[string]cty.Value{
		"key": cty.StringVal(key), "commit": commit, "variant": v.value, "rev": cty.StringVal(rev), "patch": patch,
		"source": source,
	}
	if !known {
		value["rev"] = cty.UnknownVal(cty.String)
	}
	return out, cty.ObjectVal(value)
}

// patch reads the attribute and checks the file that it names.
func (v variantReader) patch(r reader, out *Candidate, c Commit) {
	given, ok := r.Value("patch")
	if !ok {
		return
	}
	if c.Repo == (Address{}) && len(r.l.of("repo")) == 0 {
		r.Fail(out.PatchRange, "Patch without code",
			"A patch needs code to apply to: declare where it comes from with a repo block.")
		return
	}
	name := r.Str("patch")
	if name == "" {
		if given.Type() == cty.String {
			r.Fail(out.PatchRange, "Empty path", "patch must name a file. Without a patch, use null.")
		}
		return
	}
	clean, err := project.Clean(name)
	if err != nil {
		r.Fail(out.PatchRange, "Patch outside the project", "%s.", err)
		return
	}
	size, err := r.l.dir.Size(clean)
	why, optional := "", ""
	switch {
	case err == nil && size > 0:
		out.Patch = clean
		return
	case err == nil:
		why = fmt.Sprintf("patch %s is empty", clean)
	case errors.Is(err, fs.ErrNotExist):
		why, optional, out.NoFile = fmt.Sprintf("there is no file %s", clean), "no patch: ", clean
	default:
		r.Fail(out.PatchRange, unreadablePatch, "%s.", err)
		return
	}
	if v.Optional {
		out.NoPatch = optional + why
		return
	}
	r.Fail(out.PatchRange, noPatch, "%s. Create it, or say optional = true to leave such candidates out.",
		strings.ToUpper(why[:1])+why[1:])
}

// sourcesOf returns the value of source.REPO: the references to the sources of its candidates by key.
func (l *loader) sourcesOf(repo string) (cty.Value, bool) {
	if _, ok := l.byName[Address{Kind: "repo", Name: repo}]; !ok {
		return cty.NilVal, false
	}
	set := l.candidates()
	if !set.value.IsKnown() {
		return cty.DynamicVal, true
	}
	all := map[string]cty.Value{}
	for _, c := range l.spec.Candidates {
		if c.Source.Name == repo {
			all[c.Key] = token(c.Source)
		}
	}
	return cty.ObjectVal(all), true
}

// clientSource returns the address of the source of a client's revision, and adds the source when it is first asked
// for.
func (l *loader) clientSource(repo Address, rev, instance string, at hcl.Range) Address {
	if why := l.lock.unknown(repo, rev); why != "" {
		l.scope.Diags.Error(instance, at, unknownRevision, why)
		return Address{}
	}
	rev = l.lock.resolve(repo, rev)
	a := Address{Kind: "source", Name: repo.Name, Key: rev[:min(12, len(rev))], Keyed: true}
	if l.shadow {
		return a
	}
	for _, key := range []string{a.Key, rev} {
		a.Key = key
		known, ok := l.clientRevs[a]
		if ok && known == rev {
			return a
		}
		if !ok {
			break
		}
	}
	l.clientRevs[a] = rev
	l.spec.Sources = append(l.spec.Sources, Source{Block: Block{Address: a, Range: at}, Repo: repo, Rev: rev,
		RevRange: at})
	return a
}
