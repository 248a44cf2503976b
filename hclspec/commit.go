package hclspec

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/hclspec/internal/funcs"
)

func commitSchema() *eval.Schema {
	// The params are in a key only if a block uses them.
	return &eval.Schema{Kind: "commit", Label: true, Key: []string{"repo", "rev", "parent"},
		Free: []string{"for_each", "title", "params"}}
}

// commitSet holds all commits, with the values that other blocks see.
type commitSet struct {
	value  cty.Value            // object by name; unknown when a for_each is
	byName map[string]cty.Value // name, repo, rev, parent, title, params
	list   []Commit
}

// allCommits decodes the commit blocks once.
func (l *loader) allCommits() *commitSet {
	if l.commits != nil {
		return l.commits
	}
	set := &commitSet{byName: map[string]cty.Value{}}
	leave, ok := l.scope.Enter("commit", l.first("commit"))
	if !ok {
		return &commitSet{value: cty.DynamicVal}
	}
	defer leave()
	complete := true
	repo := l.onlyRepo()
	for _, d := range l.of("commit") {
		instances, known := l.instancesOf(d)
		complete = complete && known
		var names eval.Each
		if d.Attrs["for_each"] != nil {
			names = eval.Each{"key": nil, "value": nil}
		}
		block := reader{Reader: l.scope.Reader(d.Block, d.Expressions("for_each"), names), l: l}
		for _, i := range instances {
			r, name := block, d.Name
			if names != nil {
				name = i.key
				r = block.with(i.key, cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(i.key),
					"value": i.value}))
			}
			if l.checkName(r, name, set) {
				l.addCommit(set, r, name, repo)
			}
		}
	}
	set.fill(l.params)
	set.value = l.sound(set)
	if !complete {
		set.value = cty.DynamicVal
	}
	l.commits = set
	l.spec.Commits = set.list
	l.params.warn(l, set.list)
	return set
}

// addCommit decodes one commit. A commit with a mistake is out; the others stay.
func (l *loader) addCommit(set *commitSet, r reader, name string, repo Address) {
	at := Address{Kind: "commit", Name: name}
	out := l.attempt(fault{row: row{commit: name}, block: Address{Kind: "commit"}, at: at, instance: r.Instance}, true,
		func() {
			set.add(r, name, repo)
		})
	if out != nil {
		set.list[len(set.list)-1].Out = out
		l.leaveOut(row{commit: name}, out)
	}
}

// sound returns the value of commit: the commits without a mistake, over which expressions go.
func (l *loader) sound(set *commitSet) cty.Value {
	all := set.byName
	for _, c := range set.list {
		if c.Out != nil {
			if len(all) == len(set.byName) {
				all = maps.Clone(all)
			}
			delete(all, c.Name)
		}
	}
	return cty.ObjectVal(all)
}

// first returns the place of the first block of a kind.
func (l *loader) first(kind string) hcl.Range {
	if all := l.of(kind); len(all) > 0 {
		return all[0].Range
	}
	return hcl.Range{}
}

// onlyRepo returns the repo of commits that name none; zero if there is not exactly one.
func (l *loader) onlyRepo() Address {
	repos := l.of("repo")
	if len(repos) == 1 {
		return repos[0].address
	}
	return Address{}
}

// checkName refuses names that would make two candidates look alike.
func (l *loader) checkName(r reader, name string, set *commitSet) bool {
	if detail := badName(name); detail != "" {
		r.Fail(r.Block.Label, "Invalid name", "%q cannot name a commit: %s.", name, detail)
		return false
	}
	if _, ok := set.byName[name]; ok {
		r.Fail(r.Block.Label, "Duplicate commit", "There is a commit %q already.", name)
		return false
	}
	return true
}

// badName returns the reason why a name cannot be part of a candidate's key; empty: it can.
func badName(name string) string {
	switch {
	case name == "":
		return "a name cannot be empty"
	case strings.Contains(name, "/"):
		return "candidates are called commit/variant, so a name cannot have a slash"
	case strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f || c == '"' }):
		return "a name cannot have control characters or quotes"
	}
	return ""
}

// add decodes one commit.
func (set *commitSet) add(r reader, name string, repo Address) {
	c := Commit{Block: Block{Address: Address{Kind: "commit", Name: name}, Range: r.Block.Range}, Name: name,
		Repo: repo}
	r.owner = c.Address
	if r.Has("repo") {
		c.Repo = r.ref("repo", "repo")
	} else if repo == (Address{}) && len(r.l.of("repo")) > 1 {
		r.Fail(r.Block.Range, "Which repo?",
			"There is more than one repo, so commit %q must say which it belongs to: repo = repo.NAME.", name)
	}
	spelt, known := r.revision("rev", name)
	parent, parentKnown := spelt+"^", known
	if r.Has("parent") {
		parent, parentKnown = r.revision("parent", parent)
	}
	c.Rev, c.RevRange = r.l.lock.resolve(c.Repo, spelt), r.At("rev")
	if why := r.l.lock.unknown(c.Repo, spelt); why != "" {
		r.Fail(c.RevRange, unknownRevision, "%s", why)
	}
	c.Parent, c.ParentRange = r.l.lock.resolve(c.Repo, parent), r.At("parent")
	c.Title = r.Str("title")
	params := r.object("params")
	c.Params = toJSON(params)

	value := map[string]cty.Value{
		"name": cty.StringVal(name), "repo": cty.NullVal(cty.String), "rev": cty.UnknownVal(cty.String),
		"parent": cty.UnknownVal(cty.String), "title": cty.StringVal(c.Title), "params": params,
	}
	if c.Repo != (Address{}) {
		value["repo"] = token(c.Repo)
	}
	if known {
		value["rev"] = cty.StringVal(c.Rev)
	}
	if parentKnown {
		value["parent"] = cty.StringVal(c.Parent)
	}
	set.byName[name] = cty.ObjectVal(value)
	set.list = append(set.list, c)
}

// revision returns the attribute's value, or the standard one; false: a mistake makes it unknown.
func (r reader) revision(name, standard string) (string, bool) {
	v := r.Evaluate(name)
	if !v.IsKnown() {
		return "", false
	}
	if v.IsNull() {
		return standard, true
	}
	rev := r.Str(name)
	switch {
	case rev == "":
		r.Fail(r.At(name), "Empty revision", "%s must name a revision.", name)
	case badRevision(rev) != "":
		r.Fail(r.At(name), "Invalid revision", "%s.", badRevision(rev))
		return "", false
	}
	return rev, rev != ""
}

// object returns the attribute's value, which must be an object or a map; an empty object if there is none.
func (r reader) object(name string) cty.Value {
	v := r.Evaluate(name)
	switch {
	case !v.IsKnown():
		return cty.DynamicVal
	case v.IsNull():
		return cty.EmptyObjectVal
	case v.Type().IsMapType():
		return cty.ObjectVal(v.AsValueMap())
	case !v.Type().IsObjectType():
		r.Fail(r.At(name), "Wrong type", "%s must be an object, { name = value }, not %s.", name, eval.Describe(v))
		return cty.DynamicVal
	}
	return v
}

// toJSON writes a value as JSON, with the address for each reference; nil: a part of it is unknown.
func toJSON(v cty.Value) json.RawMessage {
	if !v.IsWhollyKnown() {
		return nil
	}
	plain, _ := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if v.Type() == cty.String && !v.IsNull() && strings.Contains(v.AsString(), funcs.Mark) {
			return cty.StringVal(strings.ReplaceAll(v.AsString(), funcs.Mark, "")), nil
		}
		return v, nil
	})
	raw, _ := ctyjson.Marshal(plain, plain.Type()) // nil with an error
	return raw
}
